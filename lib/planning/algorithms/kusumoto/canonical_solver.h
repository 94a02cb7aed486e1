// The solver that exact-dp and approx-dp share. It is made from a family of lower sets, and its
// knob is the budget B of Kusumoto et al. 2019, Eq. 2. The two algorithms differ only in the
// family.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lib/planning/algorithms/kusumoto/lower_set_dp.h"
#include "lib/planning/algorithms/kusumoto/lower_sets.h"
#include "lib/planning/plan/solver.h"

namespace ckplan {

// The most closures of single nodes in a family; a pass visits pairs of them.
inline constexpr int64_t kMaxClosures = 10'000;

// Total costs above kMaxExactTime are rounded to about this total for a first plan.
inline constexpr int64_t kMaxDpTime = 1000;

// Returns the unit in which the total time is about kMaxDpTime. Returns 1 if the total is searched
// exactly anyway, or if there are too many nodes to distinguish rounded times.
int64_t DpTimeUnit(const VertexGraph& vertices);
// Returns the vertices with times in units of `unit`, rounded to the nearest; times above 0 become
// at least 1.
VertexGraph RoundTimes(const VertexGraph& vertices, int64_t unit);

class CanonicalSolver : public PreparedSolver {
 public:
  struct Options {
    std::string class_name;       // For example "canonical strategies over all lower sets".
    bool is_exact = false;        // The family holds all lower sets.
    int64_t max_transitions = 0;  // 0: no limit.
    StateLimits state_limits;
    std::optional<Bytes>
        known_budget;  // A feasible B, from which the search for the minimum starts.
  };
  // Finds the least feasible budget. Errors are those of LowerSetDp::MinBudget.
  static Result<std::unique_ptr<PreparedSolver>> Prepare(const Problem& problem,
                                                         LowerSetFamily family, Options options,
                                                         const SolveLimits& limits);

  Knob knob() const override;
  Result<SolveOutcome> Solve(int64_t setting, const SolveLimits& limits) override;

 private:
  CanonicalSolver(const Problem& problem, LowerSetFamily family, Options options);
  DpLimits LimitsOf(const SolveLimits& limits) const {
    return {limits.stop, options_.max_transitions};
  }
  OverheadGoal goal() const {
    return problem_.objective == Objective::kTime ? OverheadGoal::kMin : OverheadGoal::kMax;
  }
  std::string DescribeOptimum() const;
  // Says how near the optimum an overhead is proven to be.
  std::string DescribeGap(Cost overhead, Cost bound) const;

  const Problem& problem_;
  const Options options_;
  const int64_t time_unit_;
  LowerSetFamily family_;
  LowerSetDp dp_;
  Bytes min_budget_;
};

}  // namespace ckplan
