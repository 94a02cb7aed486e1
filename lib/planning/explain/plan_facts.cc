#include "lib/planning/explain/plan_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "lib/planning/explain/traced_plan.h"
#include "lib/problem/schedule/memory_curve.h"
#include "lib/problem/schedule/training_step.h"

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
  facts->loaded = peak.of(MemoryKind::kLoaded);
  facts->peak_step = traced.NameOfStep(peak_step);
}

// The nodes that run again by segment, or by operator if the plan has no segments; by name if they
// have no operator.
std::vector<RecomputedGroup> GroupsOf(const TrainingStep& step, const Plan& plan) {
  const bool has_segments =
      std::any_of(plan.decisions.begin(), plan.decisions.end(),
                  [](const NodeDecision& decision) { return decision.segment > 0; });
  struct Members {
    RecomputedGroup group;
    NodeId first, last;
  };
  std::map<std::pair<int32_t, std::string>, Members> members;
  for (const NodeId id : step.node_ids()) {
    const NodeDecision& decision = plan.decisions[id];
    if (decision.recompute_count == 0) continue;
    const std::string& op = step.OpOf(id).empty() ? step.RawNameOf(id) : step.OpOf(id);
    Members& m = members[{decision.segment, has_segments ? "" : op}];
    if (m.group.node_count++ == 0) m.first = id;
    m.last = id;
    m.group.overhead += decision.recompute_count * step.RunCostOf(id);
    for (const TensorId output : step.OutputsOf(id)) {
      if (step.CountsInPeak(output)) m.group.outputs += step.BytesOf(output);
    }
  }
  std::vector<RecomputedGroup> groups;
  for (auto& [key, m] : members) {
    const std::string& first = step.RawNameOf(m.first);
    const std::string& last = step.RawNameOf(m.last);
    m.group.name = !has_segments ? key.second : first == last ? first : first + " ... " + last;
    groups.push_back(std::move(m.group));
  }
  std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return std::tuple(b.outputs, b.overhead) < std::tuple(a.outputs, a.overhead);
  });
  return groups;
}

void CountRuns(const Plan& plan, PlanFacts* facts) {
  for (const NodeDecision& decision : plan.decisions) {
    if (decision.recompute_count == 1) ++facts->run_twice;
    if (decision.recompute_count > 1) ++facts->run_more_often;
    if (decision.action == NodeAction::kDrop) ++facts->dropped;
  }
}

}  // namespace

PlanFacts FactsOf(const TrainingStep& step, const Plan& plan) {
  PlanFacts facts;
  CountRuns(plan, &facts);
  FillMemory(TracePlan(step, plan), &facts);
  facts.groups = GroupsOf(step, plan);
  return facts;
}

}  // namespace ckplan
