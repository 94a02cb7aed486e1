#include "lib/algorithms/given/given_runs.h"

#include <fmt/format.h>

#include <utility>

#include "lib/algorithms/given/decided_names.h"
#include "lib/algorithms/given/given.h"
#include "lib/base/checked.h"
#include "lib/base/stop.h"
#include "lib/runs/lazy_runs.h"
#include "lib/runs/run_problem.h"
#include "lib/schedule/simulate.h"

namespace ckplan {
namespace {

Error ForForwardGraphs(std::string_view form) {
  return MakeError(
      ErrorCode::kUsage,
      fmt::format("decisions: {} are for forward graphs; those about a joint graph say "
                  "what is \"kept\", or the \"order\" of its runs",
                  form));
}

// Reads decisions as runs. On faults (see `names_`) the runs are invalid.
class RunReader {
 public:
  RunReader(const JointGraph& graph, const Decisions& decisions)
      : graph_(graph), decisions_(decisions), names_(graph) {}

  Result<std::vector<OpId>> Read() {
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
    return std::vector<OpId>();
  }

 private:
  Result<std::vector<OpId>> ReadKept() {
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
    return std::vector<OpId>(std::move(runs).Take());
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

  Result<std::vector<OpId>> ReadOrder() {
    std::vector<OpId> runs;
    for (size_t k = 0; k < decisions_.order.size(); ++k) {
      PollStop();
      const DecidedStep& step = decisions_.order[k];
      if (step.kind == StepKind::kRun) {
        runs.push_back(names_.FindNode(step.what, "order"));
      } else {
        names_.Fault("order",
                     fmt::format("step {} is one of forward graphs; those of a joint graph "
                                 "are [\"r\", operation]",
                                 k));
      }
    }
    CKPLAN_RETURN_IF_ERROR(names_.Status());
    return runs;
  }

  const JointGraph& graph_;
  const Decisions& decisions_;
  DecidedNames names_;
};

// Returns whether the costs of all runs together exceed the limit for a plan.
bool IsTooCostly(const JointGraph& graph, const std::vector<OpId>& runs) {
  int64_t cost = 0;
  for (const OpId op : runs) {
    const auto sum = CheckedAdd(cost, graph.op(op).cost.count());
    if (!sum || *sum > kMaxDecidedCost) return true;
    cost = *sum;
  }
  return false;
}

}  // namespace

Result<std::vector<OpId>> RunsOfDecisions(const JointGraph& graph, const Decisions* decisions) {
  if (decisions == nullptr) return NoDecisions();
  CKPLAN_ASSIGN_OR_RETURN(std::vector<OpId> runs, RunReader(graph, *decisions).Read());
  if (IsTooCostly(graph, runs)) {
    return MakeError(ErrorCode::kInvalidInput,
                     "decisions: the costs of the runs together overflow");
  }
  const Result<Simulation> simulation = Simulator(graph).Run(runs);
  if (simulation.ok()) return runs;
  Error error = simulation.error();
  error.message = "decisions: " + error.message;
  return error;
}

}  // namespace ckplan
