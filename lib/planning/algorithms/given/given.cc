#include "lib/planning/algorithms/given/given.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lib/base/stop.h"
#include "lib/base/units.h"
#include "lib/planning/algorithms/given/decided_names.h"
#include "lib/planning/plan/fixed_plan.h"
#include "lib/problem/runs/run_problem.h"
#include "lib/problem/schedule/canonical_strategy.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {

namespace {

// Reads decisions about a graph as a strategy. The strategy is invalid if `names_` has faults.
class DecisionReader {
 public:
  DecisionReader(const TensorGraph& graph, const Decisions& decisions)
      : graph_(graph), decisions_(decisions), names_(graph) {}

  Result<Strategy> Read() {
    Strategy strategy = ReadForm();
    CKPLAN_RETURN_IF_ERROR(names_.Status());
    return strategy;
  }

 private:
  Strategy ReadForm() {
    switch (decisions_.form) {
      case Decisions::Form::kKept:
        return ReadKept();
      case Decisions::Form::kCheckpoints:
        return ReadCheckpoints();
      case Decisions::Form::kMirrorCounts:
        return ReadMirrorCounts();
      case Decisions::Form::kLowerSets:
        return ReadLowerSets();
      case Decisions::Form::kOrder:
        return ReadOrder();
    }
    return {};
  }

  Strategy ReadKept() {
    KeptSet kept{IdVector<NodeId, bool>(graph_.nodes().size())};
    for (const NameOrId& what : decisions_.sets.front()) {
      const NodeId producer = names_.FindProducer(what, "kept");
      if (!producer.is_none()) kept.is_kept[producer] = true;
    }
    return kept;
  }

  // Numbers segments as if every set added nodes; SequenceOf then closes the gaps.
  Strategy ReadCheckpoints() {
    IdVector<NodeId, int32_t> segment_of(graph_.nodes().size(), kNoSegment);
    int32_t count = 0;
    for (const NameOrId& what : decisions_.sets.front()) {
      const NodeId checkpoint = names_.FindNode(what, "checkpoints");
      if (!checkpoint.is_none()) TakeAncestors(checkpoint, count++, &segment_of);
    }
    return SequenceOf(std::move(segment_of), count);
  }

  // Puts the node and all its ancestors into the segment, except nodes that already have one.
  void TakeAncestors(NodeId node, int32_t segment, IdVector<NodeId, int32_t>* segment_of) const {
    std::vector<NodeId> open = {node};
    while (!open.empty()) {
      PollStop();
      const NodeId id = open.back();
      open.pop_back();
      if ((*segment_of)[id] != kNoSegment) continue;
      (*segment_of)[id] = segment;
      for (const TensorId input : graph_.node(id).inputs) {
        const NodeId producer = graph_.tensor(input).producer;
        if (!producer.is_none()) open.push_back(producer);
      }
    }
  }

  Strategy ReadLowerSets() {
    IdVector<NodeId, int32_t> segment_of(graph_.nodes().size(), kNoSegment);
    size_t covered = 0;
    int32_t count = 0;
    for (const std::vector<NameOrId>& set : decisions_.sets) {
      PollStop();
      const std::string where = fmt::format("lower_sets: set {}", count + 1);
      const std::vector<NodeId> added = FindAdded(set, covered, segment_of, where);
      for (const NodeId id : added) segment_of[id] = count;
      CheckIsLower(added, segment_of, where);
      covered += added.size();
      ++count;
    }
    return SequenceOf(std::move(segment_of), count);
  }

  // Returns the nodes that a set adds to the sets before it. Decisions may write a set in full,
  // including all `covered` nodes of the earlier sets, or as the nodes that it adds.
  std::vector<NodeId> FindAdded(const std::vector<NameOrId>& set, size_t covered,
                                const IdVector<NodeId, int32_t>& segment_of,
                                const std::string& where) {
    std::set<NodeId> added;
    std::set<NodeId> repeated;
    for (const NameOrId& what : set) {
      const NodeId id = names_.FindNode(what, where);
      if (!id.is_none()) (segment_of[id] == kNoSegment ? added : repeated).insert(id);
    }
    if (added.empty()) names_.Fault(where, "adds nothing to the set before it; sets must grow");
    if (!repeated.empty() && repeated.size() != covered) {
      for (const NodeId id : segment_of.ids()) {
        if (segment_of[id] == kNoSegment || repeated.count(id) != 0) continue;
        names_.Fault(where,
                     fmt::format("lacks {} of the set before it; write each set in full, or only "
                                 "the nodes that it adds",
                                 names_.Quoted(id)));
        break;
      }
    }
    return {added.begin(), added.end()};
  }

  void CheckIsLower(const std::vector<NodeId>& added, const IdVector<NodeId, int32_t>& segment_of,
                    const std::string& where) {
    for (const NodeId id : added) {
      for (const TensorId input : graph_.node(id).inputs) {
        const NodeId producer = graph_.tensor(input).producer;
        if (producer.is_none() || segment_of[producer] != kNoSegment) continue;
        return names_.Fault(where, fmt::format("is not a lower set: it has {} without its input {}",
                                               names_.Quoted(id), names_.Quoted(producer)));
      }
    }
  }

  // Puts nodes without a segment into the last one. Skips empty segments in the numbering.
  LowerSetSequence SequenceOf(IdVector<NodeId, int32_t> segment_of, int32_t count) const {
    std::vector<int32_t> number(static_cast<size_t>(count) + 1);
    for (int32_t& segment : segment_of) {
      if (segment == kNoSegment) segment = count;
      number[static_cast<size_t>(segment)] = 1;
    }
    int32_t used = 0;
    for (int32_t& n : number) n = n == 0 ? 0 : used++;
    for (int32_t& segment : segment_of) segment = number[static_cast<size_t>(segment)];
    return {std::move(segment_of), used};
  }

  Strategy ReadMirrorCounts() {
    IdVector<NodeId, int32_t> counts(graph_.nodes().size());
    int64_t copies = 0;
    for (const auto& [what, count] : decisions_.mirror_counts) {
      const NodeId id = names_.FindNode(what, "mirror_counts");
      if (id.is_none()) continue;
      copies += std::min(count, kMaxMirrors + 1);
      if (copies > kMaxMirrors) {
        names_.Fault("mirror_counts",
                     fmt::format("more than {} copies in total, which is the limit", kMaxMirrors));
        return {};
      }
      counts[id] = static_cast<int32_t>(count);
    }
    return LowerMirrorCounts(graph_, counts);
  }

  Strategy ReadOrder() {
    Schedule schedule;
    if (decisions_.has_frees()) schedule.frees = FreePolicy::kExplicit;
    for (const DecidedStep& step : decisions_.order) {
      PollStop();
      if (step.kind == StepKind::kRun || IsTransfer(step.kind)) {
        names_.Fault("order", fmt::format("step {} belongs to joint graphs; forward graphs "
                                          "have [\"f\", node], [\"loss\"] and [\"b\", node]",
                                          schedule.steps.size()));
        return {};
      }
      if (step.kind == StepKind::kLoss) {
        schedule.steps.push_back(Step::Loss());
      } else if (step.kind == StepKind::kFree) {
        schedule.steps.push_back(Step::Free(names_.FindTensor(step.what, "order")));
      } else if (step.kind == StepKind::kFreeGradient) {
        schedule.steps.push_back(Step::FreeGradient(names_.FindTensor(step.what, "order")));
      } else {
        const NodeId id = names_.FindNode(step.what, "order");
        schedule.steps.push_back(step.kind == StepKind::kForward ? Step::Forward(id)
                                                                 : Step::Backward(id));
      }
    }
    return schedule;
  }

  static constexpr int32_t kNoSegment = -1;

  const TensorGraph& graph_;
  const Decisions& decisions_;
  DecidedNames names_;
};

// Tells whether the total forward cost of all runs exceeds the limit for a plan.
bool IsTooCostly(const TensorGraph& graph, const Schedule& schedule) {
  int64_t cost = 0;
  for (const Step& step : schedule.steps) {
    if (step.kind != StepKind::kForward) continue;
    const auto sum = CheckedAdd(cost, graph.node(step.node()).forward_cost.count());
    if (!sum || *sum > kMaxDecidedCost) return true;
    cost = *sum;
  }
  return false;
}

// Returns the objective of the paper that defines this form of decisions, or else the simulated
// figures.
PaperFigures PaperFiguresOf(const Problem& problem, const Strategy& strategy,
                            const Simulation& simulation) {
  if (problem.decisions->form != Decisions::Form::kLowerSets) {
    return {std::nullopt, simulation.peak, simulation.overhead};
  }
  const auto& sequence = std::get<LowerSetSequence>(strategy);
  const CanonicalFigures figures =
      EvaluateCanonical(problem.vertices, sequence.segment_of, sequence.segment_count);
  return {std::nullopt, figures.peak, figures.overhead};
}

}  // namespace

Error NoDecisionsError() {
  return Error{ErrorCode::kUsage,
               "--algo given needs decisions",
               {},
               {"name them with", {{"decisions", "FILE"}}}};
}

Result<std::unique_ptr<PreparedSolver>> PrepareGiven(const Problem& problem, const SolveLimits&) {
  if (problem.decisions == nullptr) return NoDecisionsError();
  SolveOutcome outcome;
  CKPLAN_ASSIGN_OR_RETURN(outcome.strategy,
                          DecisionReader(problem.graph, *problem.decisions).Read());
  const Schedule schedule = LowerStrategy(problem.graph, outcome.strategy);
  if (IsTooCostly(problem.graph, schedule)) {
    return MakeError(ErrorCode::kInvalidInput,
                     "decisions: the total cost of the forward runs overflows");
  }
  Simulator simulator(problem.graph);
  Result<Simulation> simulation = simulator.Run(schedule);
  if (!simulation.ok()) {
    Error error = std::move(simulation).error();
    error.message = "decisions: " + error.message;
    return error;
  }
  if (problem.order == StepOrder::kModel && !IsMirrored(schedule)) {
    return Error{ErrorCode::kInvalidInput,
                 "decisions: backward must run in the reverse of the forward order",
                 {},
                 {"add", {{"order", "free"}}}};
  }
  outcome.paper = PaperFiguresOf(problem, outcome.strategy, *simulation);
  outcome.guarantee = kGuaranteeOfDecisions;
  return std::unique_ptr<PreparedSolver>(new FixedPlanSolver(std::move(outcome)));
}

namespace {

Error ForwardOnlyFormError(std::string_view form) {
  return MakeError(
      ErrorCode::kUsage,
      fmt::format("decisions: {} are for forward graphs; for a joint graph, give what is "
                  "\"kept\", or the \"order\" of its runs",
                  form));
}

// Reads decisions as a schedule. The schedule is invalid if `names_` has faults.
class RunReader {
 public:
  RunReader(const JointGraph& graph, const Decisions& decisions)
      : graph_(graph), decisions_(decisions), names_(graph) {}

  Result<Schedule> Read() {
    switch (decisions_.form) {
      case Decisions::Form::kKept:
        return ReadKept();
      case Decisions::Form::kOrder:
        return ReadOrder();
      case Decisions::Form::kCheckpoints:
        return ForwardOnlyFormError("checkpoints");
      case Decisions::Form::kMirrorCounts:
        return ForwardOnlyFormError("mirror counts");
      case Decisions::Form::kLowerSets:
        return ForwardOnlyFormError("lower sets");
    }
    return Schedule();
  }

 private:
  Result<Schedule> ReadKept() {
    const OpId border = FirstBackward();
    if (border.is_none()) {
      names_.Fault("kept", fmt::format("no operation has the phase \"{}\", where keeping matters; "
                                       "give the order of runs instead",
                                       NameOf(Phase::kBackward)));
    }
    const std::vector<bool> kept = FindKept();
    CKPLAN_RETURN_IF_ERROR(names_.Status());
    const RunProblem problem(graph_);
    LazyRuns runs(problem);
    for (OpId op(0); op < border; op = OpId(op.index() + 1)) runs.Run(op);
    runs.KeepOnly(kept);
    for (const OpId op : graph_.ops().ids()) {
      if (op >= border) runs.Run(op);
    }
    return ScheduleOfRuns(std::move(runs).Take());
  }

  // Returns none if the graph has no backward phase.
  OpId FirstBackward() const {
    for (const OpId id : graph_.ops().ids()) {
      if (graph_.op(id).phase == Phase::kBackward) return id;
    }
    return OpId();
  }

  // Returns for each value whether it stays: all values in memory that is named, or that must stay
  // anyway.
  std::vector<bool> FindKept() {
    std::vector<bool> has_kept_memory(graph_.values().size());
    const auto keep_memory = [&](ValueId value) {
      has_kept_memory[static_cast<size_t>(graph_.value(value).storage.index())] = true;
    };
    for (const NameOrId& what : decisions_.sets.front()) {
      if (what.name.empty() || names_.HasTensor(what)) {
        const ValueId value = names_.FindTensor(what, "kept");
        if (!value.is_none()) keep_memory(value);
        continue;
      }
      const OpId op = names_.FindNode(what, "kept");
      if (op.is_none()) continue;
      for (const ValueId write : graph_.op(op).writes) keep_memory(write);
    }
    for (const ValueId id : graph_.values().ids()) {
      const Value& value = graph_.value(id);
      const bool may_not_repeat =
          !value.producer.is_none() && !graph_.op(value.producer).may_repeat;
      if (value.is_result || may_not_repeat) keep_memory(id);
    }
    std::vector<bool> kept;
    for (const Value& value : graph_.values()) {
      kept.push_back(has_kept_memory[static_cast<size_t>(value.storage.index())]);
    }
    return kept;
  }

  Result<Schedule> ReadOrder() {
    Schedule schedule;
    for (size_t k = 0; k < decisions_.order.size(); ++k) {
      PollStop();
      const DecidedStep& step = decisions_.order[k];
      if (step.kind == StepKind::kRun) {
        schedule.steps.push_back(Step::Run(names_.FindNode(step.what, "order")));
      } else if (IsTransfer(step.kind)) {
        schedule.steps.push_back({step.kind, names_.FindTensor(step.what, "order").index()});
      } else {
        names_.Fault("order", fmt::format("step {} belongs to forward graphs; joint graphs "
                                          "have [\"r\", operation]",
                                          k));
      }
    }
    CKPLAN_RETURN_IF_ERROR(names_.Status());
    return schedule;
  }

  const JointGraph& graph_;
  const Decisions& decisions_;
  DecidedNames names_;
};

// Tells whether the total cost of all runs exceeds the limit for a plan.
bool IsTooCostly(const JointGraph& graph, const Schedule& schedule) {
  int64_t cost = 0;
  for (const OpId op : RunsOf(schedule)) {
    const auto sum = CheckedAdd(cost, graph.op(op).cost.count());
    if (!sum || *sum > kMaxDecidedCost) return true;
    cost = *sum;
  }
  return false;
}

}  // namespace

Result<Schedule> StepsOfDecisions(const TrainingStep& step, const Decisions* decisions) {
  if (decisions == nullptr) return NoDecisionsError();
  CKPLAN_ASSIGN_OR_RETURN(Schedule schedule, RunReader(step.joint(), *decisions).Read());
  if (HasTransfers(schedule) && step.link() == nullptr) {
    return Error{ErrorCode::kUsage,
                 "decisions: copying values to the host needs a link to the host",
                 {},
                 {"add", {{"offload", "pcie4"}}}};
  }
  if (IsTooCostly(step.joint(), schedule)) {
    return MakeError(ErrorCode::kInvalidInput, "decisions: the total cost of the runs overflows");
  }
  const Result<Simulation> simulation = Simulator(step).Run(schedule);
  if (simulation.ok()) return schedule;
  Error error = simulation.error();
  error.message = "decisions: " + error.message;
  return error;
}

}  // namespace ckplan
