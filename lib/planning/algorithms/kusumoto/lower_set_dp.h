// The dynamic program of Kusumoto et al. 2019 (Alg. 1) over a family of lower sets.
//
// Idea. opt[L, t] is the least memory cached, M(U), among sequences of lower sets that end in L
// with overhead t and whose every segment fits the budget:
//
//   from (L, t, m) to L' > L      fits if  m + 2 M(V') + neighbours(L') <= B        V' = L' \ L
//                                 t' = t + T(V' \ d(L'))       m' = m + M(d(L') \ L)
//
// The paper's table has a column for each t. Here a set has a list of the states (t, m) that no
// other state at the set beats in both, so costs of any size stay exact. L' pulls from its subsets,
// so there is no table of pairs, and subsets whose segment alone exceeds B are never visited.
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
// Refinement. Costs of up to kMaxExactTime in total are always exact. For larger costs, the best
// sequence with rounded node times is found first: this is fast, since lists are short, and mostly
// near the optimum. Then better sequences are searched for with exact costs. If the lists grow too
// long, states whose overheads lie within the same multiple of a unit are merged: the merged state
// has the least overhead and the least memory of them all. The least overhead at V is then a lower
// bound, and the sequence found has its true overhead. The unit shrinks until both are equal, or
// until the lists are too long again; then the gap is reported.
//
// Among equally good sequences, the one that arrives at V with less cached wins, then the one whose
// sets have lower numbers, last set first. So the sequence for a budget is also the sequence for
// every smaller budget down to its own peak.
//
// Cost: O(P N) time at worst, for P fitting pairs of sets and N states of a list; O(S N) memory for
// S sets. Wide families use several threads; the result is the same.
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
  Cost bound;  // No sequence is better than this; equal to the overhead if that is proven optimal.
};

inline constexpr int64_t kMaxExactTime = 100'000;

// Limits on the lists of one pass, for costs that are too large to be always exact.
struct StateLimits {
  int64_t max_first_steps = 200'000;  // States visited with exact costs, before any refinement.
  int64_t max_steps = 20'000'000;     // States visited by all refinements: a second or two.
  int64_t max_states = 4'000'000;     // States kept, 24 bytes each.
};

// How much work a call of Solve spends on closing a gap. Refinement takes many times as long as
// finding the sequence for rounded times, which is too long for each of many budgets; but without
// refinement there is no bound.
enum class Effort { kFirst, kRefined };

// Knowledge that one call of Solve passes on to the next one for the same family. It saves work,
// and never changes a result.
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

  // Returns the least B for which some sequence has M <= B (Eq. 2). `known` is a B that is known to
  // be feasible, such as that of a smaller family; the search is faster the nearer it is. kTimeout:
  // stopped. kUnsupported: more than `limits.max_transitions`.
  Result<Bytes> MinBudget(std::optional<Bytes> known, const DpLimits& limits);

  // Returns the best sequence under budget B, or nothing if there is none. Errors are those of
  // MinBudget; a stop after the first sequence is found is not an error.
  Result<std::optional<LowerSetPath>> Solve(Bytes budget, OverheadGoal goal, const DpLimits& limits,
                                            Effort effort = Effort::kRefined);

 private:
  const LowerSetFamily& family_;
  const std::optional<LowerSetFamily> rounded_;
  const StateLimits state_limits_;
  std::optional<LeastBudget> least_;  // Set by MinBudget().
  SearchHints hints_;
  SearchHints rounded_hints_;
};

// Returns the segment_of that LowerSetSequence and EvaluateCanonical need.
IdVector<NodeId, int32_t> SegmentsOfPath(const LowerSetFamily& family, const VertexGraph& graph,
                                         const std::vector<int32_t>& sets);

}  // namespace ckplan
