#include "lib/planning/planner/source.h"

#include <fmt/format.h>

#include "lib/planning/plan/optimizer_state.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {

std::optional<Error> UnknownState(const Source& source, Optimizer optimizer) {
  if (!source.step().optimized().is_unknown || optimizer == Optimizer::kSgd) return std::nullopt;
  return Error{
      ErrorCode::kUsage,
      fmt::format("{} does not say what is trained (\"{}\"), so the state of {} is unknown",
                  source.identity.name,
                  source.joint ? "optimized_tensors" : "parameter_gradient_bytes",
                  NameOf(optimizer)),
      {},
      {"add it, or use", {{"optimizer", "sgd"}}}};
}

Accounting AccountForPlan(const Source& source, const Plan& plan) {
  return AccountFor({source.step(), source.request, source.buffers}, plan.schedule,
                    plan.figures.peak);
}

Accounting AccountForKeepAll(const Source& source) {
  const TrainingStep step = source.step();
  return AccountFor({step, source.request, source.buffers}, step.KeepAll(), KeepAllPeak(step));
}

TrainingStep Source::step() const {
  if (!joint) return TrainingStep(graph, &modules);
  const Link* const link = request.offload ? &*request.offload : nullptr;
  const TrainingStep step =
      step_of.empty() ? TrainingStep(*joint) : TrainingStep(*joint, graph, step_of);
  return step.WithLink(link);
}

}  // namespace ckplan
