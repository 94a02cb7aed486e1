// The dynamic program of Kusumoto et al. 2019 (Alg. 1) over a family of lower sets.
//
// Idea. opt[L, t] is the least memory cached, M(U), among sequences of lower sets that end in L
// with overhead t and whose every segment fits the budget:
//
//   from (L, t, m) to L' > L      fits if  m + 2 M(V') + neighbours(L') <= B        V' = L' \ L
//                                 t' = t + T(V' \ d(L'))       m' = m + M(d(L') \ L)
//
// The paper's table has a column for each t. Here, each set has a list of its Pareto-optimal states
// (t, m), so costs of any size stay exact. L' pulls from its subsets, so no table of pairs is
// needed, and subsets whose segment alone exceeds B are never visited.
//
// Prunings, each exact (tests compare them with brute force):
//   - 2 M(V') + neighbours(L') <= B fails for all smaller L once it fails for L;
//   - a state is dropped if another state at the same L has no more memory and no worse overhead;
//   - passes in both directions find the least that is cached on arrival at each L, and the most
//     that may be cached there if V is to be reached; sets where the least exceeds the most are
//     left out;
//   - states that cannot end within a guess of the optimum, by a bound on the remaining overhead
//     (overhead_bound.h), are dropped; if no sequence is left, the guess was too low and is raised.
//
// Refinement. Total costs up to kMaxExactTime are always exact. For larger costs, the search first
// finds the best sequence with rounded node times: lists are short, so this is fast, and mostly
// near the optimum. Then it searches for better sequences with exact costs. If the lists grow too
// long, it merges states whose overheads lie within the same multiple of a unit: the merged state
// has the least overhead and the least memory of them all. The least overhead at V is then a lower
// bound, and the sequence found has its true overhead. The unit shrinks until both are equal, or
// until the lists are too long again; then the gap is reported.
//
// Ties go to the sequence that arrives at V with less cached, then to the one whose sets have lower
// numbers, last set first. So the sequence for a budget is also the sequence for every smaller
// budget down to its own peak.
//
// Cost: O(P N) time at worst, for P fitting pairs of sets and N states in a list; O(S N) memory for
// S sets. Wide families use several threads, with the same result.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/algorithms/kusumoto/fitting_segments.h"
#include "lib/planning/algorithms/kusumoto/lower_sets.h"
#include "lib/problem/graph/vertex_graph.h"

namespace ckplan {

enum class OverheadGoal {
  kMin,  // The time-centric strategy, section 4.2.
  kMax,  // The memory-centric strategy, section 4.4: Alg. 1 with max at line 15, read literally.
};

// An increasing sequence of members of the family that ends with V.
struct LowerSetPath {
  std::vector<int32_t> sets;
  Cost overhead;  // Eq. 1, by the times of the family's graph.
  Cost bound;     // A lower bound; equal to the overhead if proven optimal.
};

inline constexpr int64_t kMaxExactTime = 100'000;

// Limits on the lists of a pass, for costs too large to be always exact.
struct StateLimits {
  int64_t max_first_steps = 200'000;  // States visited with exact costs, before any refinement.
  int64_t max_steps = 20'000'000;     // States visited by all refinements: a second or two.
  int64_t max_states = 4'000'000;     // States kept, 24 bytes each.
};

// How hard a call of Solve tries to close the gap. Refinement takes many times as long as finding
// the sequence for rounded times, too long for each of many budgets; but without it, there is no
// bound.
enum class Effort { kFirst, kRefined };

// Results that one call of Solve passes to the next one for the same family. They save work, and
// never change a result.
struct SearchHints {
  int64_t price = -1;  // The best price per byte; -1 before the first call.
  int64_t slack = 0;   // The optimum minus its bound.
};

class LowerSetDp {
 public:
  // Keeps a reference to `family`. `rounded`, if set, is the same family with rounded times.
  explicit LowerSetDp(const LowerSetFamily& family,
                      std::optional<LowerSetFamily> rounded = std::nullopt,
                      const StateLimits& state_limits = {})
      : family_(family), rounded_(std::move(rounded)), state_limits_(state_limits) {}

  // Returns the lowest B for which some sequence has M <= B (Eq. 2). `known` is a B known to be
  // feasible, such as that of a smaller family; the closer it is, the faster the search. kTimeout:
  // stopped. kUnsupported: more than `limits.max_transitions`.
  Result<Bytes> MinBudget(std::optional<Bytes> known, const DpLimits& limits);

  // Returns the best sequence under budget B, if any. Returns the errors of MinBudget; a stop after
  // the first sequence is not an error.
  Result<std::optional<LowerSetPath>> Solve(Bytes budget, OverheadGoal goal, const DpLimits& limits,
                                            Effort effort = Effort::kRefined);

 private:
  const LowerSetFamily& family_;
  const std::optional<LowerSetFamily> rounded_;
  const StateLimits state_limits_;
  std::optional<MinBudgetResult> least_;  // Set by MinBudget().
  SearchHints hints_;
  SearchHints rounded_hints_;
};

// Returns `segment_of` for LowerSetSequence and EvaluateCanonical.
IdVector<NodeId, int32_t> SegmentsOfPath(const LowerSetFamily& family, const VertexGraph& graph,
                                         const std::vector<int32_t>& sets);

}  // namespace ckplan
