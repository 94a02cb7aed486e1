#include "lib/planning/algorithms/given/given_runs.h"

#include <fmt/format.h>

#include <utility>

#include "lib/base/checked.h"
#include "lib/base/stop.h"
#include "lib/planning/algorithms/given/decided_names.h"
#include "lib/planning/algorithms/given/given.h"
#include "lib/problem/runs/run_problem.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

Error ForForwardGraphs(std::string_view form) {
  return MakeError(
      ErrorCode::kUsage,
      fmt::format("decisions: {} are for forward graphs; those about a joint graph say "
                  "what is \"kept\", or the \"order\" of its runs",
                  form));
}

// Reads decisions as steps. On faults (see `names_`) the steps are invalid.
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
        return ForForwardGraphs("checkpoints");
      case Decisions::Form::kMirrorCounts:
        return ForForwardGraphs("mirror counts");
      case Decisions::Form::kLowerSets:
        return ForForwardGraphs("lower sets");
    }
    return Schedule();
  }

 private:
  Result<Schedule> ReadKept() {
    const OpId border = FirstBackward();
    if (border.is_none()) {
      names_.Fault("kept", fmt::format("no operation is of the phase \"{}\", before which values "
                                       "are kept or dropped; decide on the order of runs",
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

  // Returns none if the graph has no such phase.
  OpId FirstBackward() const {
    for (const OpId id : graph_.ops().ids()) {
      if (graph_.op(id).phase == Phase::kBackward) return id;
    }
    return OpId();
  }

  // Returns for each value whether it stays: all values in a memory that is named or must stay
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
      const bool may_not_repeat = !value.maker.is_none() && !graph_.op(value.maker).may_repeat;
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
        names_.Fault("order",
                     fmt::format("step {} is one of forward graphs; those of a joint graph "
                                 "are [\"r\", operation]",
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

// Returns whether the costs of all runs together exceed the limit for a plan.
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
  if (decisions == nullptr) return NoDecisions();
  CKPLAN_ASSIGN_OR_RETURN(Schedule schedule, RunReader(step.joint(), *decisions).Read());
  if (HasTransfers(schedule) && step.link() == nullptr) {
    return Error{ErrorCode::kUsage,
                 "decisions: values are copied to the host, and the plan has no link to it",
                 {},
                 {"add", {{"offload", "pcie4"}}}};
  }
  if (IsTooCostly(step.joint(), schedule)) {
    return MakeError(ErrorCode::kInvalidInput,
                     "decisions: the costs of the runs together overflow");
  }
  const Result<Simulation> simulation = Simulator(step).Run(schedule);
  if (simulation.ok()) return schedule;
  Error error = simulation.error();
  error.message = "decisions: " + error.message;
  return error;
}

}  // namespace ckplan
