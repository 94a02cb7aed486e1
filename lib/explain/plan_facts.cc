#include "lib/explain/plan_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "lib/explain/traced_plan.h"
#include "lib/schedule/memory_curve.h"

namespace ckplan {
namespace {

// Fills in what is in memory at the peak, as pictures and explanations count it.
void FillMemory(const TracedPlan& traced, PlanFacts* facts) {
  if (traced.steps().empty()) return;
  const size_t peak_step = traced.timeline.peak_step;
  const StepMemory peak = TraceMemory(traced.timeline, traced.kinds)[peak_step];
  facts->kept_tensors = std::count(traced.kinds.begin(), traced.kinds.end(), MemoryKind::kKept);
  facts->kept = peak.of(MemoryKind::kKept);
  facts->recomputed = peak.of(MemoryKind::kRecomputed);
  facts->passing = peak.of(MemoryKind::kPassing);
  facts->gradients = peak.of(MemoryKind::kGradients);
  facts->workspace = peak.of(MemoryKind::kWorkspace);
  facts->peak_step = traced.NameOfStep(peak_step);
}

void SortGroups(std::vector<RecomputedGroup>* groups) {
  std::stable_sort(groups->begin(), groups->end(), [](const auto& a, const auto& b) {
    return std::tuple(b.outputs, b.overhead) < std::tuple(a.outputs, a.overhead);
  });
}

std::vector<RecomputedGroup> GroupsOf(const TensorGraph& graph, const Plan& plan) {
  const bool has_segments =
      std::any_of(plan.decisions.begin(), plan.decisions.end(),
                  [](const NodeDecision& decision) { return decision.segment > 0; });
  struct Members {
    RecomputedGroup group;
    NodeId first, last;
  };
  std::map<std::pair<int32_t, std::string>, Members> members;
  for (const NodeId id : graph.nodes().ids()) {
    const NodeDecision& decision = plan.decisions[id];
    if (decision.recompute_count == 0) continue;
    const Node& node = graph.node(id);
    Members& m = members[{decision.segment, has_segments ? "" : node.op}];
    if (m.group.node_count++ == 0) m.first = id;
    m.last = id;
    m.group.overhead += decision.recompute_count * node.forward_cost;
    for (const TensorId output : node.outputs) m.group.outputs += graph.tensor(output).bytes;
  }
  std::vector<RecomputedGroup> groups;
  for (auto& [key, m] : members) {
    const std::string first = graph.node(m.first).name;
    const std::string last = graph.node(m.last).name;
    m.group.name = !has_segments ? key.second : first == last ? first : first + " ... " + last;
    groups.push_back(std::move(m.group));
  }
  SortGroups(&groups);
  return groups;
}

void CountRuns(const Plan& plan, PlanFacts* facts) {
  for (const NodeDecision& decision : plan.decisions) {
    if (decision.recompute_count == 1) ++facts->run_twice;
    if (decision.recompute_count > 1) ++facts->run_more_often;
    if (decision.action == NodeAction::kDrop) ++facts->dropped;
  }
}

// Groups nodes by operator, or by name if they have none.
std::vector<RecomputedGroup> GroupsOf(const JointGraph& graph, const Plan& plan) {
  std::map<std::string, RecomputedGroup> by_op;
  for (const OpId id : graph.ops().ids()) {
    const int32_t again = plan.decisions[id].recompute_count;
    if (again == 0) continue;
    const Operation& op = graph.op(id);
    RecomputedGroup& group = by_op[op.op.empty() ? op.name : op.op];
    group.name = op.op.empty() ? op.name : op.op;
    ++group.node_count;
    group.overhead += again * op.cost;
    for (const ValueId write : op.writes) group.outputs += graph.counted_bytes(write);
  }
  std::vector<RecomputedGroup> groups;
  for (auto& [op, group] : by_op) groups.push_back(std::move(group));
  SortGroups(&groups);
  return groups;
}

}  // namespace

PlanFacts FactsOf(const TensorGraph& graph, const Plan& plan) {
  PlanFacts facts;
  CountRuns(plan, &facts);
  FillMemory(TracePlan(*PlannedGraphOf(graph, nullptr), plan), &facts);
  facts.groups = GroupsOf(graph, plan);
  return facts;
}

PlanFacts FactsOf(const JointGraph& graph, const Plan& plan) {
  PlanFacts facts;
  CountRuns(plan, &facts);
  FillMemory(TracePlan(*PlannedGraphOf(graph), plan), &facts);
  facts.groups = GroupsOf(graph, plan);
  return facts;
}

}  // namespace ckplan
