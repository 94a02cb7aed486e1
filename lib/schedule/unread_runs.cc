#include "lib/schedule/unread_runs.h"

#include <algorithm>
#include <vector>

#include "lib/base/stop.h"

namespace ckplan {
Schedule WithoutUnreadRuns(const TensorGraph& graph, const Schedule& schedule) {
  IdVector<NodeId, int32_t> runs_before(graph.nodes().size());
  for (const Step& step : schedule.steps) {
    if (step.kind == StepKind::kForward) ++runs_before[step.node()];
  }
  IdVector<TensorId, bool> is_read(graph.tensors().size());
  Schedule kept;
  for (auto step = schedule.steps.rbegin(); step != schedule.steps.rend(); ++step) {
    PollStop();
    if (step->kind == StepKind::kForward) {
      const std::vector<TensorId>& outputs = graph.node(step->node()).outputs;
      const bool is_first = --runs_before[step->node()] == 0;
      if (!is_first && std::none_of(outputs.begin(), outputs.end(),
                                    [&](TensorId output) { return is_read[output]; })) {
        continue;
      }
      for (const TensorId output : outputs) is_read[output] = false;
    }
    for (const TensorId read : ReadsOf(graph, *step)) is_read[read] = true;
    kept.steps.push_back(*step);
  }
  std::reverse(kept.steps.begin(), kept.steps.end());
  return kept;
}

}  // namespace ckplan
