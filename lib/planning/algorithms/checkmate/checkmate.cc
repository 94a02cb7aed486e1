#include "lib/planning/algorithms/checkmate/checkmate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "lib/base/stop.h"
#include "lib/planning/algorithms/checkmate/stage_program.h"
#include "lib/planning/mip/mip.h"
#include "lib/problem/runs/run_problem.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

constexpr size_t kMaxOps = 80;

int64_t LargestWorkingSet(const RunProblem& problem) {
  int64_t largest = 0;
  for (int32_t op = 0; op < problem.op_count; ++op) {
    const auto at = static_cast<size_t>(op);
    int64_t bytes = problem.written_bytes[at] + problem.workspace[at] - problem.in_place_bytes[at];
    for (const int32_t read : problem.reads[op]) bytes += problem.bytes[static_cast<size_t>(read)];
    largest = std::max(largest, bytes);
  }
  return largest;
}

class Checkmate : public PreparedRunSolver {
 public:
  explicit Checkmate(const JointGraph& graph)
      : graph_(graph),
        problem_(graph),
        program_(graph, problem_),
        simulator_(graph),
        own_peak_(KeepAllPeak(graph).count()),
        min_(std::min(own_peak_, LargestWorkingSet(problem_))) {}

  Knob knob() const override { return {Knob::Kind::kPeakLimit, min_, own_peak_, min_}; }

  Result<RunOutcome> Solve(int64_t limit, const SolveLimits& limits) override {
    const StopScope scope(limits.stop);
    if (limit > min_ || limit >= own_peak_) return Within(limit);
    if (!least_) {
      CKPLAN_ASSIGN_OR_RETURN(StageSolution solution, program_.LeastPeak(own_peak_));
      least_ = {solution.runs.value_or(OwnOrder(graph_)), solution.status == MipStatus::kOptimal};
    }
    CKPLAN_ASSIGN_OR_RETURN(RunOutcome outcome, Within(PeakOf(least_->runs)));
    outcome.is_optimal &= least_->is_proven;
    return outcome;
  }

 private:
  struct LeastPlan {
    Runs runs;
    bool is_proven = false;
  };

  int64_t PeakOf(const Runs& runs) { return simulator_.Run(runs).value().peak.count(); }
  int64_t CostOf(const Runs& runs) { return simulator_.Run(runs).value().cost.count(); }

  Result<RunOutcome> Within(int64_t limit) {
    if (limit >= own_peak_) return OutcomeOf(OwnOrder(graph_), true);
    const auto known = solved_.find(limit);
    if (known != solved_.end()) return known->second;
    CKPLAN_ASSIGN_OR_RETURN(const StageSolution solution, program_.LeastTime(limit));
    std::optional<Runs> runs = solution.runs;
    bool is_proven = solution.status == MipStatus::kOptimal;
    if (runs && PeakOf(*runs) > limit) {
      CKPLAN_ASSIGN_OR_RETURN(const StageSolution again,
                              program_.LeastTime(2 * limit - PeakOf(*runs) - 1));
      is_proven &= again.runs && CostOf(*again.runs) == CostOf(*runs);
      runs = again.runs;
    }
    const bool fits = runs && PeakOf(*runs) <= limit;
    if (!fits && least_ && PeakOf(least_->runs) <= limit) {
      runs = least_->runs;
      is_proven = false;
    } else if (!fits) {
      PollStop();
      return MakeError(ErrorCode::kInfeasible,
                       fmt::format("checkmate has no plan within {} bytes", limit));
    }
    const RunOutcome outcome = OutcomeOf(*std::move(runs), is_proven);
    return solved_.emplace(limit, outcome).first->second;
  }

  static RunOutcome OutcomeOf(Runs runs, bool is_proven) {
    return {std::move(runs), is_proven,
            is_proven ? "optimal among plans in stages: first runs in the graph's order, and each "
                        "operation at most once between two of them"
                      : "heuristic: the best plan in stages when the solver was stopped"};
  }

  const JointGraph& graph_;
  const RunProblem problem_;
  const StageProgram program_;
  Simulator simulator_;
  const int64_t own_peak_;
  const int64_t min_;  // A lower bound of the peak of any plan.
  std::optional<LeastPlan> least_;
  std::map<int64_t, RunOutcome> solved_;
};

}  // namespace

Result<std::unique_ptr<PreparedRunSolver>> PrepareCheckmateRuns(const JointGraph& graph,
                                                                const SolveLimits&) {
  if (!HasMipSolver()) {
    return MakeError(
        ErrorCode::kUnsupported,
        "checkmate needs HiGHS, which this ckplan was built without; see docs/dependencies.md");
  }
  if (graph.ops().size() > kMaxOps) {
    return MakeError(ErrorCode::kUnsupported,
                     fmt::format("checkmate plans up to {} operations of a training step, forward "
                                 "and backward, and \"{}\" has {}",
                                 kMaxOps, graph.name(), graph.ops().size()));
  }
  return std::unique_ptr<PreparedRunSolver>(new Checkmate(graph));
}

}  // namespace ckplan
