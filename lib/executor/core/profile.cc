#include "lib/executor/core/profile.h"

#include <algorithm>
#include <utility>

#include "lib/executor/core/program.h"
#include "lib/executor/core/runner.h"

namespace ckplan {

namespace {

bool Computes(ActionKind kind) {
  return kind == ActionKind::kForward || kind == ActionKind::kBackward ||
         kind == ActionKind::kAdd || kind == ActionKind::kCopy;
}

}  // namespace

Result<Done> Stopwatch::Before(const Action& action, const RunState&) {
  if (Computes(action.kind)) began_ = clock_->Mark();
  return Done{};
}

Result<Done> Stopwatch::After(const Action& action, const RunState& state) {
  if (!Computes(action.kind)) return Done{};
  Span span{began_, clock_->Mark(), last_backward_, &NodeSeconds::backward};
  if (action.kind == ActionKind::kForward || action.kind == ActionKind::kBackward) {
    const Call& call = state.program.calls[static_cast<size_t>(action.call)];
    span.node = call.node;
    if (action.kind == ActionKind::kBackward) {
      last_backward_ = call.node;
    } else {
      span.part = call.is_recomputation ? &NodeSeconds::recompute : &NodeSeconds::forward;
    }
  }
  if (!span.node.is_none()) spans_.push_back(span);
  return Done{};
}

SecondsOfNodes Stopwatch::Read() const {
  SecondsOfNodes nodes(nodes_);
  for (const Span& span : spans_) {
    nodes[span.node].*span.part += clock_->SecondsBetween(span.begin, span.end);
  }
  return nodes;
}

Result<Done> StepTimer::Before(const Action& action, const RunState&) {
  if (marks_.empty() || action.kind == ActionKind::kLoss) marks_.push_back(clock_->Mark());
  return Done{};
}

Result<Done> StepTimer::After(const Action& action, const RunState& state) {
  const bool is_last = &action == &state.program.actions.back();
  if (is_last || action.kind == ActionKind::kLoss) marks_.push_back(clock_->Mark());
  return Done{};
}

double StepTimer::Seconds() const {
  double seconds = 0;
  for (size_t i = 1; i < marks_.size(); i += 2) {
    seconds += clock_->SecondsBetween(marks_[i - 1], marks_[i]);
  }
  return seconds;
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle),
                   values.end());
  return values[middle];
}

StepSeconds TypicalSeconds(const std::vector<SecondsOfNodes>& runs) {
  StepSeconds step;
  if (runs.empty()) return step;
  const auto typical = [&runs](NodeId id, double NodeSeconds::*part) {
    std::vector<double> seconds;
    for (const SecondsOfNodes& run : runs) seconds.push_back(run[id].*part);
    return Median(std::move(seconds));
  };
  for (const NodeId id : runs.front().ids()) {
    const double recompute = typical(id, &NodeSeconds::recompute);
    step.recompute += recompute;
    step.total +=
        typical(id, &NodeSeconds::forward) + recompute + typical(id, &NodeSeconds::backward);
  }
  return step;
}

namespace {

// Forward and backward times of each node, one value per run.
struct Samples {
  std::vector<double> forward;
  std::vector<double> backward;
};
using SamplesOfNodes = IdVector<NodeId, Samples>;

void Add(const SecondsOfNodes& seconds, SamplesOfNodes* samples) {
  for (const NodeId id : samples->ids()) {
    (*samples)[id].forward.push_back(seconds[id].forward);
    (*samples)[id].backward.push_back(seconds[id].backward);
  }
}

// Splits the time of each fused group among its nodes, in proportion to `alone`.
void SplitGroups(const FusedProgram& fused, const SamplesOfNodes& alone,
                 std::vector<ProfiledNode>* nodes) {
  for (const FusedProgram::Group& group : fused.groups()) {
    double together = 0;
    double one_by_one = 0;
    for (const Call& call : group.fusion.calls) {
      together += (*nodes)[static_cast<size_t>(call.node.index())].forward_seconds;
      one_by_one += Median(alone[call.node].forward);
    }
    const auto count = static_cast<double>(group.fusion.calls.size());
    for (const Call& call : group.fusion.calls) {
      const double share =
          one_by_one > 0 ? Median(alone[call.node].forward) / one_by_one : 1 / count;
      (*nodes)[static_cast<size_t>(call.node.index())].forward_seconds = together * share;
    }
  }
}

}  // namespace

Result<std::vector<ProfiledNode>> ProfileNodes(Backend& backend, const StepGraph& step,
                                               const StepOperators& operators,
                                               ConstantStore& constants,
                                               const ProfileOptions& options) {
  SizedGraph run{step.graph};
  CKPLAN_ASSIGN_OR_RETURN(run.graph, GraphWithWorkspaces(step, operators));
  CKPLAN_ASSIGN_OR_RETURN(run.graph, AlignSizes(run.graph, BufferAlignment(backend)));
  run.has_workspaces = true;
  const PlacedProgram plan = PlaceKeepAll(step, run, KeepAllInOwnOrder(step.graph));
  CKPLAN_ASSIGN_OR_RETURN(const auto arena, ArenaMemory::Create(backend, plan.program, plan.offsets,
                                                                plan.arena_bytes, false));
  arena->Touch();
  const Loss loss(LossKind::kGiven, options.seed);
  Runner runner(backend, step, operators, constants, loss, options.seed, nullptr);
  const FusedProgram fused(plan.program, step, operators, backend);
  SamplesOfNodes as_run(step.graph.nodes().size());
  SamplesOfNodes alone(step.graph.nodes().size());
  for (int i = 0; i <= options.runs; ++i) {
    Stopwatch watch(backend, step);
    CKPLAN_RETURN_IF_ERROR(runner.Run(plan.program, *arena, &watch));
    if (i > 0) Add(watch.Read(), &as_run);
    if (fused.groups().empty()) continue;
    Stopwatch one_by_one(backend, step, /*fuses=*/false);
    CKPLAN_RETURN_IF_ERROR(runner.Run(plan.program, *arena, &one_by_one));
    if (i > 0) Add(one_by_one.Read(), &alone);
  }
  std::vector<ProfiledNode> nodes;
  for (const NodeId id : as_run.ids()) {
    nodes.push_back({step.graph.node(id).name, Median(as_run[id].forward),
                     Median(as_run[id].backward), operators.workspaces[id]});
  }
  SplitGroups(fused, alone, &nodes);
  return nodes;
}

}  // namespace ckplan
