// What exact-dp and approx-dp share: a family of lower sets turned into a solver whose knob is
// the budget B of Kusumoto et al. 2019, Eq. 2. They differ in the family alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lib/algorithms/kusumoto/lower_set_dp.h"
#include "lib/algorithms/kusumoto/lower_sets.h"
#include "lib/plan/solver.h"

namespace ckplan {

// The most closures of single nodes that are looked at; a pass looks at pairs of them.
inline constexpr int64_t kMaxClosures = 10'000;

// Costs above kMaxExactTime are rounded for a first plan. docs/benchmarks.md has what that costs.
inline constexpr int64_t kMaxDpTime = 1000;

// The unit in which the total time is about kMaxDpTime. 1 where the total is searched exactly
// anyway, or where there are too many nodes to tell rounded times apart.
int64_t DpTimeUnit(const VertexGraph& vertices);
// The vertices with times in units of `unit`, rounded to the nearest, at least 1 where not 0.
VertexGraph RoundTimes(const VertexGraph& vertices, int64_t unit);

class CanonicalSolver : public PreparedSolver {
 public:
  struct Options {
    std::string class_name;       // "canonical strategies over all lower sets"
    bool is_exact = false;        // The family holds all lower sets.
    int64_t max_transitions = 0;  // 0: no limit.
    StateLimits state_limits;
    std::optional<Bytes>
        known_budget;  // A feasible B, from which the search for the minimum starts.
  };
  // Finds the least feasible budget. kTimeout or kUnsupported as LowerSetDp::MinBudget.
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
  // Says how near the best an overhead is proven to be.
  std::string DescribeGap(Cost overhead, Cost bound) const;

  const Problem& problem_;
  const Options options_;
  const int64_t time_unit_;
  LowerSetFamily family_;
  LowerSetDp dp_;
  Bytes min_budget_;
};

}  // namespace ckplan
