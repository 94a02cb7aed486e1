#include "lib/planning/plan/constraints.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/base/check.h"
#include "lib/planning/plan/request.h"

namespace ckplan {
namespace {

using Flags = IdVector<NodeId, bool>;

constexpr std::string_view kProducers = "node or tensor";
constexpr std::string_view kForwardProducers = "operation or value of the forward pass";

bool HasAny(const Flags& flags) {
  return std::any_of(flags.begin(), flags.end(), [](bool flag) { return flag; });
}

// Returns the nodes that the patterns match, as flags for all nodes of the graph.
Result<Flags> SelectNodes(const NamePatterns& patterns, const std::vector<NodeId>& nodes,
                          const std::vector<NamedThing>& things, std::string_view what,
                          size_t count) {
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<bool> is_chosen, ChooseByName(patterns, things, what));
  Flags flags(count);
  for (size_t i = 0; i < nodes.size(); ++i) flags[nodes[i]] = is_chosen[i];
  return flags;
}

// The names by which patterns find a node: its own and, for `keep` and `recompute`, its results'.
struct Names {
  std::vector<NodeId> nodes;
  std::vector<NamedThing> things;

  void Add(NodeId id, NamedThing thing) {
    nodes.push_back(id);
    things.push_back(std::move(thing));
  }
};

Error Conflict(std::string_view name, std::string_view why) {
  return MakeError(
      ErrorCode::kUsage,
      fmt::format("\"{}\" must both be recomputed and {}; exclude it from one of the two, "
                  "for example with a pattern that starts with !",
                  name, why));
}

NodeId FirstInBoth(const Flags& a, const Flags& b) {
  for (const NodeId id : a.ids()) {
    if (a[id] && b[id]) return id;
  }
  return {};
}

Result<Constraints> ConstraintsOf(const PlanRequest& request, const Names& producers,
                                  std::string_view what, const Names& operations, size_t count) {
  CKPLAN_ASSIGN_OR_RETURN(
      Flags kept, SelectNodes(request.keep, producers.nodes, producers.things, what, count));
  CKPLAN_ASSIGN_OR_RETURN(Flags recomputed, SelectNodes(request.recompute, producers.nodes,
                                                        producers.things, what, count));
  CKPLAN_ASSIGN_OR_RETURN(Flags once, SelectNodes(request.never_rerun, operations.nodes,
                                                  operations.things, "operation", count));
  for (const auto& [flags, why] : {std::pair(&kept, "be kept"), {&once, "never run again"}}) {
    const NodeId both = FirstInBoth(*flags, recomputed);
    if (both.is_none()) continue;
    const auto at = std::find(operations.nodes.begin(), operations.nodes.end(), both);
    return Conflict(
        operations.things[static_cast<size_t>(at - operations.nodes.begin())].names.front(), why);
  }
  for (const NodeId id : once.ids()) once[id] = once[id] || kept[id];
  return Constraints{std::move(kept), std::move(once), std::move(recomputed)};
}

// Also recomputes the aliases of recomputed values, because a reader of an alias reads its base's
// memory.
Result<Done> RecomputeAliases(const JointGraph& graph, Constraints* constraints) {
  for (const OpId id : graph.ops().ids()) {
    const Operation& op = graph.op(id);
    const bool is_alias = std::any_of(op.writes.begin(), op.writes.end(), [&](ValueId write) {
      const ValueId base = graph.value(write).alias_of;
      const OpId producer = base.is_none() ? OpId() : graph.value(base).producer;
      return !producer.is_none() && constraints->is_recomputed[producer];
    });
    if (is_alias && !IsOfBackwardPass(op)) constraints->is_recomputed[id] = true;
    if (!constraints->is_recomputed[id]) continue;
    if (!op.may_repeat) return Conflict(op.name, "run only once, as the graph says");
    if (constraints->runs_once[id]) return Conflict(op.name, "run only once");
  }
  return Done{};
}

}  // namespace

bool Constraints::has_once() const { return HasAny(runs_once); }
bool Constraints::has_recomputed() const { return HasAny(is_recomputed); }

bool HasConstraints(const PlanRequest& request) {
  return !request.keep.empty() || !request.recompute.empty() || !request.never_rerun.empty();
}

Result<Constraints> ConstraintsOf(const TrainingStep& step, const PlanRequest& request) {
  Names producers;
  Names operations;
  for (const NodeId id : step.node_ids()) {
    NamedThing thing{{step.RawNameOf(id)}, step.OpOf(id)};
    operations.Add(id, thing);
    if (step.IsBackward(step.RunOf(id))) continue;
    for (const TensorId output : step.OutputsOf(id)) thing.names.push_back(step.RawNameOf(output));
    producers.Add(id, std::move(thing));
  }
  CKPLAN_ASSIGN_OR_RETURN(
      Constraints constraints,
      ConstraintsOf(request, producers, step.is_joint() ? kForwardProducers : kProducers,
                    operations, step.node_count()));
  if (!step.is_joint()) return constraints;
  const JointGraph& graph = step.joint();
  const bool has_backward = std::any_of(graph.ops().begin(), graph.ops().end(), IsOfBackwardPass);
  if (constraints.has_recomputed() && !has_backward) {
    return MakeError(
        ErrorCode::kUsage,
        "nothing can be recomputed for the backward pass, because no operation of the graph has "
        "the phase backward");
  }
  CKPLAN_RETURN_IF_ERROR(RecomputeAliases(graph, &constraints));
  return constraints;
}

JointGraph ForbidReruns(const JointGraph& graph, const IdVector<OpId, bool>& runs_once) {
  JointGraphParts parts = PartsOf(graph);
  for (const OpId id : parts.ops.ids()) {
    if (runs_once[id]) parts.ops[id].may_repeat = false;
  }
  return JointGraph::Create(std::move(parts)).value();
}

Expansion ForbidReruns(const Expansion& expansion, const IdVector<NodeId, bool>& runs_once) {
  IdVector<OpId, bool> ops(expansion.step_of.size());
  for (const OpId op : ops.ids()) {
    const Step& step = expansion.step_of[static_cast<size_t>(op.index())];
    ops[op] = step.kind == StepKind::kForward && runs_once[step.node()];
  }
  return {ForbidReruns(expansion.graph, ops), expansion.step_of};
}

ScheduleRules::ScheduleRules(const TensorGraph& graph, const Constraints& constraints)
    : node_count_(static_cast<int32_t>(graph.nodes().size())) {
  const auto nodes = static_cast<size_t>(node_count_);
  rules_.producers.resize(2 * nodes + 1);
  rules_.is_backward.resize(2 * nodes + 1);
  rules_.runs_once.resize(2 * nodes + 1);
  rules_.is_recomputed.resize(2 * nodes + 1);
  const auto add = [&](size_t op, const std::vector<TensorId>& reads) {
    for (const TensorId read : reads) {
      if (!graph.is_input(read))
        rules_.producers[op].push_back(graph.tensor(read).producer.index());
    }
  };
  for (const NodeId id : graph.nodes().ids()) {
    const auto at = static_cast<size_t>(id.index());
    add(at, graph.node(id).inputs);
    add(nodes + 1 + at, graph.node(id).backward_reads);
    rules_.is_backward[nodes + 1 + at] = true;
    rules_.runs_once[at] = constraints.runs_once[id];
    rules_.is_recomputed[at] = constraints.is_recomputed[id];
  }
  add(nodes, graph.outputs());
}

Runs ScheduleRules::RunsOf(const Schedule& schedule) const {
  Runs runs;
  for (const Step& step : schedule.steps) {
    CKPLAN_CHECK(!step.is_free() && step.kind != StepKind::kRun,
                 "schedules under constraints release tensors after their last read");
    runs.emplace_back(step.kind == StepKind::kLoss      ? node_count_
                      : step.kind == StepKind::kForward ? step.index
                                                        : node_count_ + 1 + step.index);
  }
  return runs;
}

bool ScheduleRules::AreSatisfiedBy(const Schedule& schedule) const {
  return Satisfies(rules_, RunsOf(schedule));
}

Schedule ScheduleRules::ConstrainedTo(const Schedule& schedule) const {
  Schedule constrained;
  constrained.frees = schedule.frees;
  for (const OpId run : ckplan::ConstrainedTo(rules_, RunsOf(schedule))) {
    const int32_t op = run.index();
    constrained.steps.push_back(op == node_count_  ? Step::Loss()
                                : op < node_count_ ? Step::Forward(NodeId(op))
                                                   : Step::Backward(NodeId(op - node_count_ - 1)));
  }
  return constrained;
}

}  // namespace ckplan
