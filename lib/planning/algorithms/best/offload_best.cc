#include "lib/planning/algorithms/best/offload_best.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

#include "lib/base/stop.h"
#include "lib/planning/algorithms/best/certificates.h"
#include "lib/planning/algorithms/best/moment_program.h"
#include "lib/planning/algorithms/best/offload_cut.h"
#include "lib/planning/algorithms/best/offload_network.h"
#include "lib/planning/mip/mip.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {

namespace {

// The maximum number of programs with new windows.
constexpr int kMaxPrograms = 8;

class OffloadBounding {
 public:
  OffloadBounding(const RunProblem& problem, const CopyTimes& times, std::span<const OpId> order,
                  size_t moment, int64_t budget, const OffloadBoundLimits& limits)
      : problem_(problem),
        times_(times),
        order_(order),
        moment_(moment),
        budget_(budget),
        limits_(limits) {}

  Result<OffloadBound> Run() && {
    const int64_t least = MinPeakWithCopies(problem_, times_.may_move).first;
    RaisePeak(least, PeakProof::kWorkingSet, BoundScope::kAnyOrder);
    OffloadCut cut = CutWithOffload(problem_, times_, order_, moment_, budget_, limits_.cuts);
    if (!cut.is_feasible) {
      RaisePeak(budget_ + cut.missing_bytes, PeakProof::kMoments, BoundScope::kOwnOrder);
    }
    if (bound_.is_infeasible) return std::move(bound_);
    Raise(cut.added_cost, OverheadProof::kOneCut);
    if (cut.added_cost > 0 && limits_.work > 0 && HasMipSolver()) {
      CKPLAN_RETURN_IF_ERROR(SolvePrograms(cut.windows));
    }
    std::reverse(bound_.choices.begin(), bound_.choices.end());
    std::move(cut.choices.begin(), cut.choices.end(), std::back_inserter(bound_.choices));
    return std::move(bound_);
  }

 private:
  void RaisePeak(int64_t bytes, PeakProof proof, BoundScope scope) {
    if (Bytes(bytes) <= bound_.least_peak.bytes) return;
    bound_.least_peak = {Bytes(bytes), proof, scope};
    bound_.is_infeasible = bytes > budget_;
  }

  void Raise(int64_t bound, OverheadProof proof) {
    if (bound <= bound_.lower_bound) return;
    bound_.lower_bound = bound;
    bound_.proof = proof;
  }

  Result<Done> SolvePrograms(const std::vector<CopyWindow>& windows) {
    const auto moment = static_cast<int32_t>(moment_);
    ChargedSteps charged{{moment}, {}, {}};
    for (const CopyWindow& window : windows) charged.windows.push_back({moment, window});
    for (int round = 0; round < kMaxPrograms && bound_.work < limits_.work; ++round) {
      ProgramLimits<MomentPlan> limits{limits_.work - bound_.work};
      limits.is_plan_enough = [&](const MomentPlan& plan) {
        bound_.choices.push_back(
            {{order_.begin(), order_.end()}, moment_, plan.kept[0], plan.loaded[0]});
        return false;
      };
      CKPLAN_ASSIGN_OR_RETURN(const MomentOutcome solved,
                              SolveMoments(problem_, order_, charged, budget_, limits, &times_));
      bound_.work += solved.work;
      if (solved.is_infeasible) {
        RaisePeak(budget_ + 1, PeakProof::kMoments, BoundScope::kOwnOrder);
        return Done{};
      }
      Raise(solved.lower_bound, OverheadProof::kMoments);
      if (!solved.plan || !AddNew(solved.plan->exceeded, &charged.windows)) return Done{};
    }
    return Done{};
  }

  // Adds the new windows. Returns whether there were any.
  static bool AddNew(const std::vector<ChargedWindow>& found, std::vector<ChargedWindow>* windows) {
    bool is_any_new = false;
    for (const ChargedWindow& window : found) {
      if (std::find(windows->begin(), windows->end(), window) != windows->end()) continue;
      windows->push_back(window);
      is_any_new = true;
    }
    return is_any_new;
  }

  const RunProblem& problem_;
  const CopyTimes& times_;
  const std::span<const OpId> order_;
  const size_t moment_;
  const int64_t budget_;
  const OffloadBoundLimits& limits_;
  OffloadBound bound_;
};

}  // namespace

Result<OffloadBound> ProveOffloadBound(const RunProblem& problem, const CopyTimes& times,
                                       std::span<const OpId> order, size_t moment, int64_t budget,
                                       const OffloadBoundLimits& limits) {
  return OffloadBounding(problem, times, order, moment, budget, limits).Run();
}

namespace {

// Choices for smaller budgets leave memory for copies in progress.
constexpr std::array<int64_t, 5> kRoomsPerThousand = {1000, 975, 950, 990, 920};
// Above this many operations, only cuts prove the bound.
constexpr int32_t kMaxOffloadProgramOps = 20'000;
// Smaller graphs get proportionally less work for programs.
constexpr int32_t kFullOps = 500;

// Returns the graph without in-place writes through an alias. A plan that fits without them also
// fits with them.
JointGraph RemoveAliasTakeovers(const JointGraph& graph) {
  JointGraphParts parts = PartsOf(graph);
  for (Operation& op : parts.ops) {
    std::erase_if(op.in_place, [&](const InPlaceWrite& pair) {
      return !graph.value(pair.read).alias_of.is_none();
    });
  }
  return JointGraph::Create(std::move(parts)).value();
}

// Returns the graph to search: without in-place writes through an alias, unless an operation needs
// them to fit the budget.
JointGraph ChooseSearchGraph(const JointGraph& graph, int64_t budget) {
  JointGraph strict = RemoveAliasTakeovers(graph);
  return LargestNeed(strict) <= budget ? std::move(strict) : graph;
}

class OffloadSolver {
 public:
  OffloadSolver(const JointGraph& graph, const OffloadLimits& limits, const OffloadEffort& effort,
                const OffloadOutcome* before)
      : graph_(graph),
        limits_(limits),
        effort_(effort),
        before_(before),
        strict_(ChooseSearchGraph(graph, limits.budget)),
        problem_(strict_),
        order_(RequiredOwnOrder(problem_)) {}

  Result<OffloadOutcome> Run(const std::vector<Schedule>& starts) && {
    outcome_.lower_bound = IdleCost();
    try {
      CKPLAN_RETURN_IF_ERROR(Bound());
    } catch (const Stopped&) {
      // Still consider the starts.
    }
    if (before_ != nullptr) TakeProofs(*before_);
    OffloadSearchOptions options;
    options.work = effort_.search;
    options.starts = starts;
    options.starts.push_back(
        ScheduleOfRuns(limits_.rules == nullptr ? order_ : ConstrainedTo(*limits_.rules, order_)));
    if (before_ != nullptr && before_->best) options.found.push_back(before_->best->schedule);
    if (before_ != nullptr && before_->nearest) options.found.push_back(before_->nearest->schedule);
    options.choices = std::move(choices_);
    options.enough = std::max(outcome_.lower_bound, effort_.enough.value_or(0));
    OffloadFound found = SearchOffload(graph_, strict_, problem_, SearchLimits(), options);
    outcome_.best = std::move(found.best);
    outcome_.nearest = std::move(found.nearest);
    Settle();
    return std::move(outcome_);
  }

 private:
  Result<Done> Bound() {
    const RunProblem bounded(graph_);
    outcome_.least_peak = {Bytes(LargestNeed(graph_)), PeakProof::kWorkingSet,
                           BoundScope::kAnyOrder};
    outcome_.is_infeasible = outcome_.least_peak.bytes.count() > limits_.budget;
    const CopyTimes times = CopyTimesOf(bounded, limits_.link, limits_.may_move);
    const size_t moment = Simulator(graph_).Run(order_).value().peak_step;
    const int64_t programs =
        problem_.op_count > kMaxOffloadProgramOps
            ? 0
            : effort_.programs / kFullOps * std::min(problem_.op_count, kFullOps);
    CKPLAN_ASSIGN_OR_RETURN(OffloadBound bound,
                            ProveOffloadBound(bounded, times, order_, moment, limits_.budget,
                                              {effort_.cuts, programs}));
    choices_ = std::move(bound.choices);
    if (bound.lower_bound > 0) {
      outcome_.lower_bound += bound.lower_bound;
      outcome_.proof = bound.proof;
    }
    if (bound.is_infeasible && !outcome_.is_infeasible) outcome_.least_peak = bound.least_peak;
    for (size_t i = 1; i < static_cast<size_t>(effort_.rooms); ++i) {
      const __int128 thousandfold = static_cast<__int128>(limits_.budget) * kRoomsPerThousand[i];
      OffloadCut cut = CutWithOffload(bounded, times, order_, moment,
                                      static_cast<int64_t>(thousandfold / 1000), effort_.cuts);
      std::move(cut.choices.begin(), cut.choices.end(), std::back_inserter(choices_));
    }
    return Done{};
  }

  void TakeProofs(const OffloadOutcome& before) {
    if (before.lower_bound > outcome_.lower_bound) {
      outcome_.lower_bound = before.lower_bound;
      outcome_.proof = before.proof;
    }
    if (before.least_peak.bytes > outcome_.least_peak.bytes) {
      outcome_.least_peak = before.least_peak;
    }
    outcome_.is_infeasible |= before.is_infeasible;
  }

  int64_t IdleCost() const {
    int64_t cost = -problem_.total_cost;
    for (const OpId op : order_) cost += problem_.cost[At(op.index())];
    return cost;
  }

  // Copying a value is not worthwhile if it takes less time than the link's latency.
  OffloadLimits SearchLimits() const {
    OffloadLimits limits = limits_;
    for (size_t value = 0; value < limits.may_move.size(); ++value) {
      const Cost time = limits.link.TimeOf(CopyWay::kOut, Bytes(problem_.bytes[value]));
      if (time.count() < 2 * limits.link.latency_ns) limits.may_move[value] = false;
      if (problem_.bytes[value] == 0) limits.may_move[value] = false;
    }
    return limits;
  }

  // A plan in another order may add less than the bound of the graph's own order.
  void Settle() {
    if (!outcome_.best) return;
    if (outcome_.best->overhead < outcome_.lower_bound) {
      outcome_.lower_bound = IdleCost();
      outcome_.proof = OverheadProof::kRunOnce;
      outcome_.scope = BoundScope::kAnyOrder;
    }
    outcome_.is_optimal = outcome_.best->overhead == outcome_.lower_bound;
    if (outcome_.lower_bound == IdleCost()) outcome_.scope = BoundScope::kAnyOrder;
  }

  const JointGraph& graph_;
  const OffloadLimits& limits_;
  const OffloadEffort& effort_;
  const OffloadOutcome* const before_;
  const JointGraph strict_;
  const RunProblem problem_;
  const Runs order_;
  std::vector<OffloadChoice> choices_;
  OffloadOutcome outcome_;
};

}  // namespace

int64_t LargestNeed(const JointGraph& graph) {
  const TrainingStep step(graph);
  Bytes most(0);
  for (const OpId op : RequiredOwnOrder(RunProblem(graph))) {
    most = std::max(most, step.OwnNeedOf(Step::Run(op)));
  }
  return most.count();
}

Result<OffloadOutcome> SolveWithOffload(const JointGraph& graph, const OffloadLimits& limits,
                                        const OffloadEffort& effort,
                                        const std::vector<Schedule>& starts,
                                        const OffloadOutcome* before) {
  std::optional<OffloadSolver> solver;
  {
    const StopsSuspended no_stops;  // A stopped search must still measure its starts.
    solver.emplace(graph, limits, effort, before);
  }
  return std::move(*solver).Run(starts);
}

}  // namespace ckplan
