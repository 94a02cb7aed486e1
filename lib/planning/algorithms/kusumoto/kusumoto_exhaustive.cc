#include "lib/planning/algorithms/kusumoto/kusumoto_exhaustive.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <utility>
#include <vector>

#include "lib/base/stop.h"
#include "lib/planning/algorithms/kusumoto/lower_set_dp.h"
#include "lib/planning/algorithms/kusumoto/lower_sets.h"
#include "lib/problem/schedule/canonical_figures.h"

namespace ckplan {
namespace {

class Exhaustive : public PreparedSolver {
 public:
  Exhaustive(const Problem& problem, LowerSetFamily family)
      : problem_(problem), family_(std::move(family)), last_(family_.size() - 1) {}

  // The lowest peak of any sequence, found by a search without a budget, is the least feasible
  // budget.
  Result<Done> FindMinBudget(const SolveLimits& limits) {
    Search search{Bytes::Max(), true, {}, {}, {}, Bytes::Max()};
    CKPLAN_RETURN_IF_ERROR(Extend(0, Bytes(0), Cost(0), Bytes(0), limits, &search));
    min_budget_ = search.min_peak;
    return Done{};
  }

  Knob knob() const override {
    const int64_t max_budget = std::max(min_budget_, 2 * problem_.vertices.total_memory()).count();
    return {Knob::Kind::kPaperBudget, min_budget_.count(), max_budget, min_budget_.count()};
  }

  Result<SolveOutcome> Solve(int64_t setting, const SolveLimits& limits) override {
    Search search{Bytes(setting), problem_.objective == Objective::kTime, {}, {}, {}, Bytes::Max()};
    CKPLAN_RETURN_IF_ERROR(Extend(0, Bytes(0), Cost(0), Bytes(0), limits, &search));
    if (search.best.empty()) {
      return MakeError(ErrorCode::kInfeasible,
                       fmt::format("no sequence of lower sets has a peak of {} bytes by Eq. 2; the "
                                   "least is {} bytes",
                                   setting, min_budget_.count()));
    }
    LowerSetSequence sequence;
    sequence.segment_of = SegmentsOfPath(family_, problem_.vertices, search.best);
    sequence.segment_count = static_cast<int32_t>(search.best.size());
    const CanonicalFigures figures =
        EvaluateCanonical(problem_.vertices, sequence.segment_of, sequence.segment_count);
    SolveOutcome outcome;
    outcome.strategy = std::move(sequence);
    outcome.paper = {Bytes(setting), figures.peak, figures.overhead};
    outcome.is_optimal = true;
    outcome.guarantee =
        "optimal for Eq. 1 under Eq. 2 among canonical strategies over all lower sets";
    return outcome;
  }

 private:
  // Lower is better. Among equally good sequences it takes the one that exact-dp takes
  // (lower_set_dp.h): the one that caches less, then the one whose sets have lower numbers, last
  // set first.
  struct Rank {
    int64_t key = 0;  // The overhead, or its negative if the greatest is sought.
    Bytes cached;
    auto operator<=>(const Rank&) const = default;
  };
  struct Search {
    Bytes budget;
    bool wants_min;
    std::vector<int32_t> sequence;  // The current branch.
    std::vector<int32_t> best;      // Empty if there is none yet.
    Rank best_rank;
    Bytes min_peak;
  };

  static bool IsBetter(const Search& search, const Rank& rank) {
    if (search.best.empty() || rank != search.best_rank) {
      return search.best.empty() || rank < search.best_rank;
    }
    return std::lexicographical_compare(search.sequence.rbegin(), search.sequence.rend(),
                                        search.best.rbegin(), search.best.rend());
  }

  // Tries every lower set that can follow `top`.
  Result<Done> Extend(int32_t top, Bytes cached, Cost overhead, Bytes peak,
                      const SolveLimits& limits, Search* search) {
    PollStop(last_ - top + 1);
    if (limits.stop.stop_requested()) return MakeError(ErrorCode::kTimeout, "stopped");
    if (top == last_) {
      search->min_peak = std::min(search->min_peak, peak);
      const Rank rank{search->wants_min ? overhead.count() : -overhead.count(), cached};
      if (IsBetter(*search, rank)) {
        search->best = search->sequence;
        search->best_rank = rank;
      }
      return Done{};
    }
    for (int32_t next = top + 1; next <= last_; ++next) {
      if (!IsSubset(top, next)) continue;
      const LowerSetFamily::Facts& from = family_.facts(top);
      const LowerSetFamily::Facts& to = family_.facts(next);
      const Bytes needed = cached + 2 * (to.memory - from.memory) + to.neighbours;
      if (needed > search->budget) continue;
      const LowerSetFamily::Overlap shared = family_.BoundaryWithin(next, top);
      search->sequence.push_back(next);
      CKPLAN_RETURN_IF_ERROR(
          Extend(next, cached + to.boundary_memory - shared.memory,
                 overhead + to.time - from.time - (to.boundary_time - shared.time),
                 std::max(peak, needed), limits, search));
      search->sequence.pop_back();
    }
    return Done{};
  }

  bool IsSubset(int32_t smaller, int32_t larger) const {
    bool is_subset = true;
    family_.ForEachMember(smaller, [&](NodeId v) { is_subset &= family_.contains(larger, v); });
    return is_subset;
  }

  const Problem& problem_;
  LowerSetFamily family_;
  const int32_t last_;
  Bytes min_budget_;
};

}  // namespace

Result<std::unique_ptr<PreparedSolver>> PrepareKusumotoExhaustive(const Problem& problem,
                                                                  const SolveLimits& limits) {
  auto family = LowerSetFamily::All(problem.vertices, kMaxExhaustiveLowerSets, {limits.stop});
  if (!family.ok() && family.error().code == ErrorCode::kTimeout) return std::move(family).error();
  if (!family.ok()) {
    Error error = std::move(family).error();
    error.message =
        fmt::format("kusumoto-exhaustive: {}; exact-dp finds the same optimum", error.message);
    return error;
  }
  auto solver = std::make_unique<Exhaustive>(problem, std::move(*family));
  CKPLAN_RETURN_IF_ERROR(solver->FindMinBudget(limits));
  return std::unique_ptr<PreparedSolver>(std::move(solver));
}

}  // namespace ckplan
