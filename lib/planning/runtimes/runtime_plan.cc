#include "lib/planning/runtimes/runtime_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "lib/planning/runtimes/blocks.h"
#include "lib/planning/runtimes/class_search.h"
#include "lib/planning/runtimes/tag_class.h"
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

JointGraph MarkBackwardPhase(const JointGraph& graph) {
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

namespace {

// Returns the calls for which `is_chosen` is true, by type, in order of first occurrence.
template <typename IsChosen>
std::vector<Calls> CallsOf(const JointGraph& graph, const std::vector<OpId>& forward,
                           const IsChosen& is_chosen) {
  std::vector<Calls> found;
  std::map<std::string, size_t> place_of;
  for (size_t i = 0; i < forward.size(); ++i) {
    const std::string& type = graph.op(forward[i]).op;
    const auto [place, is_new] = place_of.try_emplace(type, found.size());
    if (is_new) found.push_back({type, {}, 0});
    Calls& calls = found[place->second];
    if (is_chosen(i)) calls.calls.push_back(calls.count);
    ++calls.count;
  }
  std::erase_if(found, [](const Calls& calls) { return calls.calls.empty(); });
  return found;
}

RuntimePlan MakeRuntimePlan(RuntimeKind kind, Bytes budget, const ClassPlan& found) {
  RuntimePlan plan;
  plan.kind = kind;
  plan.budget = budget;
  plan.peak = found.peak;
  plan.overhead = found.overhead;
  plan.fits = found.fits;
  plan.is_exact = found.is_exact;
  return plan;
}

PlannedRegion Describe(const RegionClass& plans, const CheckpointedRegion& chosen) {
  const RegionRuns& runs = plans.runs();
  const std::vector<OpId>& forward = runs.region(chosen.region).forward;
  const auto is_saved = [&](size_t i) { return !chosen.is_saved.empty() && chosen.is_saved[i]; };
  PlannedRegion region;
  region.modules = plans.ModulesOf(chosen.region);
  region.ops = static_cast<int64_t>(forward.size());
  for (size_t i = 0; i < runs.RunAgainCount(chosen.region); ++i) {
    if (is_saved(i)) continue;
    ++region.run_again;
    region.overhead += runs.graph().op(forward[i]).cost;
  }
  region.saved = CallsOf(runs.graph(), forward, is_saved);
  return region;
}

Result<RuntimePlan> FindRegionPlan(const JointGraph& graph, const std::vector<Block>& blocks,
                                   RuntimeKind kind, Bytes budget) {
  CKPLAN_ASSIGN_OR_RETURN(const RegionClass plans, MakeRegionClass(graph, blocks, kind));
  const ClassPlan found = FindClassPlan(plans, budget);
  RuntimePlan plan = MakeRuntimePlan(kind, budget, found);
  for (const CheckpointedRegion& region : plans.RegionsOf(found.choice)) {
    plan.regions.push_back(Describe(plans, region));
  }
  plan.setting = plans.OptionOf(0, found.choice).setting;
  return plan;
}

Result<RuntimePlan> FindTagPlan(const JointGraph& graph, const std::vector<Block>& blocks,
                                Bytes budget) {
  CKPLAN_ASSIGN_OR_RETURN(const TagClass plans, MakeTagClass(graph, blocks));
  const ClassPlan found = FindClassPlan(plans, budget);
  RuntimePlan plan = MakeRuntimePlan(RuntimeKind::kTorchtitan, budget, found);
  std::vector<OpId> runs = plans.RunsOf(found.choice);
  std::sort(runs.begin(), runs.end());
  const std::vector<OpId> recomputed = plans.RecomputedBy(found.choice);
  for (size_t i = 0; i < plans.unit_count(); ++i) {
    const std::vector<OpId>& forward = plans.unit(i).forward;
    const auto is_saved = [&](size_t at) {
      return !std::binary_search(recomputed.begin(), recomputed.end(), forward[at]);
    };
    PlannedRegion region;
    region.modules = {plans.unit(i).path};
    region.ops = static_cast<int64_t>(forward.size());
    for (const OpId id : forward) {
      const auto [begin, end] = std::equal_range(runs.begin(), runs.end(), id);
      region.run_again += end - begin - 1;
      region.overhead += (end - begin - 1) * graph.op(id).cost;
    }
    region.saved = CallsOf(graph, forward, is_saved);
    plan.regions.push_back(std::move(region));
  }
  return plan;
}

// Selective checkpoints and tags name operators, so the runtime must know them.
Result<Done> CheckOperators(const JointGraph& graph, RuntimeKind kind) {
  if (kind != RuntimeKind::kSac && kind != RuntimeKind::kTorchtitan) return Done();
  for (const Operation& op : graph.ops()) {
    if (op.op.starts_with("aten.")) return Done();
  }
  return MakeError(
      ErrorCode::kUnsupported,
      fmt::format(
          "{} names PyTorch operators, but {} has none; use a graph that ckplan.torch writes",
          InfoOf(kind).name, graph.name()));
}

}  // namespace

Result<RuntimePlan> FindRuntimePlan(const JointGraph& step, RuntimeKind kind, Bytes budget) {
  CKPLAN_RETURN_IF_ERROR(CheckOperators(step, kind));
  const JointGraph graph = MarkBackwardPhase(step);
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<Block> blocks, FindBlocks(graph));
  const bool is_tags = kind == RuntimeKind::kTorchtitan;
  Result<RuntimePlan> plan =
      is_tags ? FindTagPlan(graph, blocks, budget) : FindRegionPlan(graph, blocks, kind, budget);
  if (plan.ok()) {
    plan->layers = std::count_if(blocks.begin(), blocks.end(),
                                 [](const Block& block) { return block.is_repeated; });
  }
  return plan;
}

}  // namespace ckplan
