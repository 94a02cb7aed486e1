#include "lib/problem/schedule/forward_transfers.h"

#include <fmt/format.h>

namespace ckplan {
namespace {

// Returns the last run that reads each value; -1 if none does.
IdVector<ValueId, int32_t> LastReads(const JointGraph& graph, const Schedule& schedule) {
  IdVector<ValueId, int32_t> last(graph.values().size(), -1);
  for (size_t at = 0; at < schedule.steps.size(); ++at) {
    const Step& step = schedule.steps[at];
    if (step.is_transfer()) continue;
    for (const ValueId read : graph.op(step.node()).reads) last[read] = static_cast<int32_t>(at);
  }
  return last;
}

}  // namespace

Result<Schedule> InForwardForm(const TensorGraph& graph, const Expansion& expansion,
                               const Schedule& schedule) {
  const auto tensors = static_cast<int32_t>(graph.tensors().size());
  const IdVector<ValueId, int32_t> last_reads = LastReads(expansion.graph, schedule);
  Schedule forward;
  forward.steps.reserve(schedule.steps.size());
  for (Step step : schedule.steps) {
    const auto at = static_cast<int32_t>(forward.steps.size());
    if (!step.is_transfer()) {
      forward.steps.push_back(expansion.step_of[static_cast<size_t>(step.index)]);
      continue;
    }
    if (step.index >= tensors) {
      const TensorId of = expansion.gradient_of[step.tensor()];
      if (of.is_none() || last_reads[step.tensor()] < at) {
        return MakeError(
            ErrorCode::kUnsupported,
            fmt::format("step {} moves \"{}\", which later steps do not have in memory", at,
                        expansion.graph.value(step.tensor()).name));
      }
      step.index = tensors + of.index();
    }
    forward.steps.push_back(step);
  }
  return forward;
}

}  // namespace ckplan
