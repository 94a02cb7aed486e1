#include "lib/explain/plan_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "lib/plan/node_name.h"
#include "lib/schedule/memory_curve.h"
#include "lib/schedule/timeline.h"

namespace ckplan {
namespace {

void FillMemory(const Timeline& timeline, PlanFacts* facts) {
  for (const Version& version : timeline.versions) {
    if (KindOf(timeline, version) == MemoryKind::kKept) ++facts->kept_tensors;
  }
  const StepMemory peak = TraceMemory(timeline)[timeline.peak_step];
  facts->kept = peak.of(MemoryKind::kKept);
  facts->recomputed = peak.of(MemoryKind::kRecomputed);
  facts->passing = peak.of(MemoryKind::kPassing);
  facts->gradients = peak.of(MemoryKind::kGradients);
  facts->workspace = peak.of(MemoryKind::kWorkspace);
}

std::string DescribeStep(const TensorGraph& graph, const Step& step, bool is_after_loss) {
  switch (step.kind) {
    case StepKind::kForward:
      return (is_after_loss ? "recomputation of " : "forward of ") + graph.node(step.node()).name;
    case StepKind::kLoss:
      return "the loss";
    case StepKind::kBackward:
      return "backward of " + graph.node(step.node()).name;
    case StepKind::kFree:
      return "the release of " + graph.tensor(step.tensor()).name;
    case StepKind::kRun:
      break;  // Occurs only in joint graphs.
  }
  return "";
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

void FillForwardGraph(const TensorGraph& graph, const Plan& plan, PlanFacts* facts) {
  const Timeline timeline = BuildTimeline(graph, plan.schedule);
  FillMemory(timeline, facts);
  facts->peak_step = DescribeStep(graph, plan.schedule.steps[timeline.peak_step],
                                  timeline.peak_step > timeline.loss_step);
  facts->groups = GroupsOf(graph, plan);
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

void FillJointGraph(const JointGraph& graph, const Plan& plan, PlanFacts* facts) {
  const std::vector<Step>& steps = plan.schedule.steps;
  IdVector<OpId, int32_t> runs_before_peak(graph.ops().size());
  const auto peak_step = static_cast<size_t>(plan.peak->step);
  for (size_t k = 0; k <= peak_step && k < steps.size(); ++k) ++runs_before_peak[steps[k].node()];
  for (const LiveBuffer& buffer : plan.peak->live) {
    if (buffer.kind == BufferKind::kWorkspace) {
      facts->workspace += buffer.bytes;
      continue;
    }
    const bool is_first = runs_before_peak[graph.value(buffer.tensor()).maker] == 1;
    (is_first ? facts->kept : facts->recomputed) += buffer.bytes;
    if (is_first) ++facts->kept_tensors;
  }
  if (!steps.empty()) facts->peak_step = "run of " + ShownName(graph, steps[peak_step].node());
  facts->groups = GroupsOf(graph, plan);
}

}  // namespace

PlanFacts FactsOf(const TensorGraph& graph, const Plan& plan) {
  PlanFacts facts;
  CountRuns(plan, &facts);
  FillForwardGraph(graph, plan, &facts);
  return facts;
}

PlanFacts FactsOf(const JointGraph& graph, const Plan& plan) {
  PlanFacts facts;
  CountRuns(plan, &facts);
  FillJointGraph(graph, plan, &facts);
  return facts;
}

}  // namespace ckplan
