#include "lib/planning/runtimes/named_step.h"

#include <utility>
#include <vector>

#include "lib/problem/schedule/expand.h"

namespace ckplan {
namespace {

JointGraph WithModules(const JointGraph& graph, const std::vector<Step>& step_of,
                       const ModuleCalls& modules) {
  JointGraphParts parts = PartsOf(graph);
  for (const OpId id : parts.ops.ids()) {
    const Step& step = step_of[static_cast<size_t>(id.index())];
    if (step.kind == StepKind::kLoss) continue;
    const int32_t call = modules.call_of[step.node()];
    if (call >= 0) parts.ops[id].module = modules.call(call).path;
  }
  return JointGraph::Create(std::move(parts)).value();
}

}  // namespace

JointGraph WithPasses(const JointGraph& graph) {
  JointGraphParts parts = PartsOf(graph);
  bool is_backward = false;
  for (Operation& op : parts.ops) {
    is_backward = is_backward || op.phase == Phase::kBackward;
    if (is_backward) op.phase = Phase::kBackward;
  }
  return JointGraph::Create(std::move(parts)).value();
}

JointGraph NamedStep(const TrainingStep& step, const ModuleCalls& modules) {
  if (!step.has_forward()) return step.joint();
  if (step.is_joint()) {
    return modules.empty() ? step.joint() : WithModules(step.joint(), step.step_of(), modules);
  }
  Expansion expansion = ExpandTensorGraph(step.forward());
  if (modules.empty()) return std::move(expansion.graph);
  return WithModules(expansion.graph, expansion.step_of, modules);
}

}  // namespace ckplan
