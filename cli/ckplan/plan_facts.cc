#include "cli/ckplan/plan_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

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
  }
  return "";
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
  std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return std::tuple(b.outputs, b.overhead) < std::tuple(a.outputs, a.overhead);
  });
  return groups;
}

}  // namespace

PlanFacts FactsOf(const TensorGraph& graph, const Plan& plan) {
  PlanFacts facts;
  const Timeline timeline = BuildTimeline(graph, plan.schedule);
  FillMemory(timeline, &facts);
  facts.peak_step = DescribeStep(graph, plan.schedule.steps[timeline.peak_step],
                                 timeline.peak_step > timeline.loss_step);
  for (const NodeDecision& decision : plan.decisions) {
    if (decision.recompute_count == 1) ++facts.run_twice;
    if (decision.recompute_count > 1) ++facts.run_more_often;
  }
  facts.groups = GroupsOf(graph, plan);
  return facts;
}

}  // namespace ckplan
