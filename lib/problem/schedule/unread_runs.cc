#include "lib/problem/schedule/unread_runs.h"

#include <algorithm>
#include <vector>

#include "lib/base/stop.h"

namespace ckplan {

Schedule WithoutUnreadRuns(const TrainingStep& of, const Schedule& schedule) {
  const auto is_run = [](const Step& step) {
    return step.kind == StepKind::kForward || step.kind == StepKind::kRun;
  };
  IdVector<NodeId, int32_t> runs_before(of.node_count());
  for (const Step& step : schedule.steps) {
    if (is_run(step)) ++runs_before[step.node()];
  }
  IdVector<TensorId, bool> is_read(of.tensor_count());
  if (of.is_joint()) {
    for (const ValueId result : of.joint().results()) is_read[result] = true;
  }
  Schedule kept;
  for (auto step = schedule.steps.rbegin(); step != schedule.steps.rend(); ++step) {
    PollStop();
    if (is_run(*step)) {
      const std::vector<TensorId>& outputs = of.OutputsOf(step->node());
      const bool is_first = --runs_before[step->node()] == 0;
      const bool is_wanted = std::any_of(outputs.begin(), outputs.end(),
                                         [&](TensorId output) { return is_read[output]; });
      if (!is_first && !is_wanted) continue;
      for (const TensorId output : outputs) is_read[output] = false;
    }
    for (const TensorId read : of.ReadsOf(*step)) is_read[read] = true;
    if (step->kind == StepKind::kOut) is_read[step->tensor()] = true;
    kept.steps.push_back(*step);
  }
  std::reverse(kept.steps.begin(), kept.steps.end());
  return kept;
}

}  // namespace ckplan
