// The solver shared by exact-dp and approx-dp, which differ only in their families of lower sets.
// Its knob is the budget B of Kusumoto et al. 2019, Eq. 2.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lib/planning/algorithms/kusumoto/lower_set_dp.h"
#include "lib/planning/algorithms/kusumoto/lower_sets.h"
#include "lib/planning/plan/solver.h"

namespace ckplan {

// The maximum number of closures of single nodes in a family; a pass visits pairs of them.
inline constexpr int64_t kMaxClosures = 10'000;

// Total costs above kMaxExactTime are rounded to about this total for a first plan.
// docs/benchmarks.md shows the effect.
inline constexpr int64_t kMaxDpTime = 1000;

// Returns the unit in which the total time is about kMaxDpTime, or 1 if the search is exact anyway
// or rounding would make too many times equal.
int64_t DpTimeUnit(const VertexGraph& vertices);
// Returns the vertices with times rounded to units of `unit`; times above 0 become at least 1.
VertexGraph RoundTimes(const VertexGraph& vertices, int64_t unit);

class CanonicalSolver : public PreparedSolver {
 public:
  struct Options {
    std::string class_name;       // Such as "canonical strategies over all lower sets".
    bool is_exact = false;        // The family holds all lower sets.
    int64_t max_transitions = 0;  // 0: no limit.
    StateLimits state_limits;
    std::optional<Bytes>
        known_budget;  // A feasible B, from which the search for the minimum starts.
  };
  // Finds the lowest feasible budget. Returns the errors of LowerSetDp::MinBudget.
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
  // Describes how close to the optimum an overhead is proven to be.
  std::string DescribeGap(Cost overhead, Cost bound) const;

  const Problem& problem_;
  const Options options_;
  const int64_t time_unit_;
  LowerSetFamily family_;
  LowerSetDp dp_;
  Bytes min_budget_;
};

// Exact dynamic programming over all lower sets.
//
//   Kusumoto, Inoue, Watanabe, Akiba, Koyama. "A Graph Theoretic Framework of Recomputation
//   Algorithms for Memory-Efficient Backpropagation", NeurIPS 2019, section 4.2, Alg. 1.
//
// Idea. A canonical strategy is an increasing sequence of lower sets L1 < L2 < ... < Lk = V. The
// forward pass keeps the boundary of each Li; backward recomputes each Li \ Li-1 once. opt[L, t] is
// the least memory kept for boundaries on the way to L with overhead t (lower_set_dp.h).
//
// Guarantee  optimal for Eq. 1 under the budget of Eq. 2 among canonical strategies. If costs have
//            to be rounded, or a search with exact costs would take too long, the plan says how
//            near the optimum it is proven to be (lower_set_dp.h). It is not optimal among all
//            schedules, nor for the simulated peak, which Eq. 2 bounds only if backward
//            steps are by input (WithBackwardByInput).
// Knob       B of Eq. 2; without a budget the least feasible B.
// Cost       O(P N) time, P = pairs of nested lower sets whose difference fits the budget, N =
//            states (t, m) of a set, few in practice; O(S (N + n / 64)) memory for S lower sets. S
//            can be exponential in the width of the graph: limited to kMaxLowerSets.
// Paper      U -> cached, M_v, T_v, B, L as there.
// Differs    - sets are visited after their subsets. The authors' program numbers sets as it finds
//              them and tries only higher numbers, which misses transitions.
//            - The memory-centric objective is Alg. 1, read literally: max at line 15 over all
//              states.

// exact-dp rejects graphs above these limits; docs/benchmarks.md has the sizes of real models.
inline constexpr int64_t kMaxLowerSets = 250'000;
inline constexpr int64_t kMaxLowerSetBytes = int64_t{512} << 20;  // One bit per node and set.
inline constexpr int64_t kMaxTransitions = 60'000'000'000;        // Takes minutes on one core.

Result<std::unique_ptr<PreparedSolver>> PrepareExactDp(const Problem& problem,
                                                       const SolveLimits& limits);

// Dynamic programming over the closures of single nodes: fast, and near the exact DP in practice.
//
//   Kusumoto, Inoue, Watanabe, Akiba, Koyama. "A Graph Theoretic Framework of Recomputation
//   Algorithms for Memory-Efficient Backpropagation", NeurIPS 2019, section 4.3.
//
// Idea. The same recurrence as exact-dp, but over the n closures L^v = {w : v is reachable from w}
// instead of all lower sets, of which there can be exponentially many.
//
// Guarantee  best canonical strategy among sequences of closures; a heuristic for all sequences.
//            Its least feasible budget can be higher than exact-dp's.
// Knob       B of Eq. 2; without a budget the least feasible B.
// Cost       O(N S^2) time for S closures and N states (t, m) of a set, few in practice (see
//            lower_set_dp.h); O(S n / 64 + N S) memory. S is n up to kMaxClosures. For larger
//            graphs only that many closures are taken, at equal distances, and fewer if their
//            boundaries are wide (LowerSetFamily::Closures); the plan says so.
// Paper      L^v -> closure, U -> cached, M_v, T_v, B as in kusumoto.h.
// Differs    V is added to the family if the graph has several sinks; without V no sequence would
//            end.
Result<std::unique_ptr<PreparedSolver>> PrepareApproxDp(const Problem& problem,
                                                        const SolveLimits& limits);

// Depth-first search over all sequences of lower sets.
//
//   Kusumoto, Inoue, Watanabe, Akiba, Koyama. "A Graph Theoretic Framework of Recomputation
//   Algorithms for Memory-Efficient Backpropagation", NeurIPS 2019, section 4.1.
//
// Idea. Extend L1 < ... < Li by every larger lower set that keeps Eq. 2 within the budget, and
// remember the best overhead on reaching V. Nothing is shared between branches.
//
// Guarantee  the optimal canonical strategy, as with exact-dp, found in the simplest way. Use it to
//            understand or verify exact-dp, not to plan.
// Knob       B of Eq. 2; without a budget the least feasible B.
// Cost       exponential in the number of lower sets, so limited to kMaxExhaustiveLowerSets.
// Paper      as in kusumoto.h. Costs are not rounded.
inline constexpr int64_t kMaxExhaustiveLowerSets = 24;  // At worst, 2^22 sequences.

Result<std::unique_ptr<PreparedSolver>> PrepareKusumotoExhaustive(const Problem& problem,
                                                                  const SolveLimits& limits);

}  // namespace ckplan
