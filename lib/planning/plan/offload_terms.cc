#include "lib/planning/plan/offload_terms.h"

#include <vector>

#include "lib/base/check.h"
#include "lib/base/name_patterns.h"
#include "lib/planning/plan/constraints.h"
#include "lib/problem/schedule/step_table.h"

namespace ckplan {
namespace {

// Forbids moving what the operation produces, and values that share its memory.
void KeepOnDevice(const JointGraph& graph, const Operation& op, OffloadTerms* terms) {
  for (const ValueId write : op.writes) terms->may_move[graph.value(write).storage] = false;
}

Result<Done> KeepNamedOnDevice(const JointGraph& graph, const PlanRequest& request,
                               OffloadTerms* terms) {
  std::vector<NamedThing> things;
  std::vector<ValueId> values;
  for (const ValueId id : graph.values().ids()) {
    const Value& value = graph.value(id);
    if (value.producer.is_none()) continue;
    const Operation& producer = graph.op(value.producer);
    things.push_back({{value.name, producer.name}, producer.op});
    values.push_back(value.storage);
  }
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<bool> is_named,
                          ChooseByName(request.never_offload, things, "operation or value"));
  for (size_t i = 0; i < values.size(); ++i) {
    if (is_named[i]) terms->may_move[values[i]] = false;
  }
  return Done{};
}

}  // namespace

Result<OffloadTerms> OffloadTermsOf(const TrainingStep& step, const PlanRequest& request) {
  CKPLAN_CHECK(step.is_joint() && request.offload, "offload is for joint graphs");
  const JointGraph& graph = step.joint();
  OffloadTerms terms{*request.offload, request.host_budget, MovableValues(graph)};
  CKPLAN_ASSIGN_OR_RETURN(const Constraints constraints, ConstraintsOf(step, request));
  for (const OpId id : graph.ops().ids()) {
    if (constraints.is_kept[id] || constraints.is_recomputed[id]) {
      KeepOnDevice(graph, graph.op(id), &terms);
    }
  }
  CKPLAN_RETURN_IF_ERROR(KeepNamedOnDevice(graph, request, &terms));
  if (!step.has_forward()) return terms;
  for (const ValueId id : graph.values().ids()) {
    const Value& value = graph.value(id);
    if (value.storage != id) terms.may_move[value.storage] = false;
  }
  return terms;
}

}  // namespace ckplan
