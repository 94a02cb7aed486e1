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
// so no table of pairs exists, and subsets whose segment alone exceeds B are never visited.
//
// Prunings, each exact (tests compare them with brute force):
//   - 2 M(V') + neighbours(L') <= B fails for all smaller L once it fails for L;
//   - a state is dropped if another at the same L has no more memory and no worse overhead;
//   - passes in both directions find how little is cached on arrival at each L, and how much may be
//     so that V can be reached at all; sets where these contradict each other are left out;
//   - states that by a bound on the overhead to go (overhead_bound.h) cannot end within a guess of
//     the optimum are dropped; if no sequence is left, the guess was too low and is raised.
//
// Refinement. Costs of up to kMaxExactTime in total are always exact. Of larger ones a sequence is
// found first that is the best with each node's time rounded: that is fast, since lists are short,
// and mostly near the optimum. Then better ones are searched for with exact costs.
// Where the lists grow too long, states are merged whose overheads lie within the same multiple of
// a unit: the merged state has the least overhead of all and the least memory of all. The least
// overhead at V is then a lower bound, and the sequence found has its true overhead. The unit
// shrinks until both are equal, or until the lists are too long again: the gap is reported.
//
// Of equally good sequences the one is taken that arrives at V with less cached, then the one whose
// sets have lower numbers, last set first. So the sequence for a budget is also that for every
// smaller one down to its own peak.
//
// Cost: O(P N) time for P pairs of subsets that fit and N states of a list at the worst; O(S N)
// memory for S sets. Several threads where the family is wide; the result is the same.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "lib/algorithms/kusumoto/lower_sets.h"
#include "lib/algorithms/kusumoto/min_budget.h"
#include "lib/algorithms/kusumoto/work_meter.h"
#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/graph/vertex_graph.h"

namespace ckplan {

enum class OverheadGoal {
  kMin,  // The time-centric strategy, section 4.2.
  kMax,  // The memory-centric strategy, section 4.4: Alg. 1 with max at line 15, read literally.
};

// An increasing sequence of members of the family, the last of which is V.
struct LowerSetPath {
  std::vector<int32_t> sets;
  Cost overhead;  // Eq. 1, in the times of the family's graph.
  Cost bound;     // No sequence is better than this; the overhead itself if it is proven optimal.
};

inline constexpr int64_t kMaxExactTime = 100'000;

// When the lists of one pass are too long, if the costs are not small enough to be exact anyway.
struct StateLimits {
  int64_t max_first_steps = 200'000;  // States looked at with exact costs, before any refinement.
  int64_t max_steps = 20'000'000;     // States looked at by all refinements: a second or two.
  int64_t max_states = 4'000'000;     // States kept, of 24 bytes.
};

// How much a call of Solve does about a gap. Refinement takes many times as long as the sequence
// for rounded times, which is too long for each of many budgets; that sequence has no bound.
enum class Effort { kFirst, kRefined };

// What one call of Solve learns for the next one on the same family: it saves work, and never
// changes a result.
struct SearchHints {
  int64_t price = -1;  // The best price of a byte; -1 before the first call.
  int64_t slack = 0;   // By how much the optimum was above its bound.
};

class LowerSetDp {
 public:
  // Keeps a reference to `family`. `rounded`, if any, is the same one with rounded times.
  explicit LowerSetDp(const LowerSetFamily& family,
                      std::optional<LowerSetFamily> rounded = std::nullopt,
                      const StateLimits& state_limits = {})
      : family_(family), rounded_(std::move(rounded)), state_limits_(state_limits) {}

  // The least B for which some sequence has M <= B (Eq. 2). `known` is a B that is known to be
  // feasible, such as that of a smaller family; the nearer it is, the faster is the search.
  // kTimeout: stopped. kUnsupported: more than `limits.max_transitions`.
  Result<Bytes> MinBudget(std::optional<Bytes> known, const DpLimits& limits);

  // The best sequence under budget B, or nothing if there is none. Errors as above; a stop after a
  // first sequence is found is none.
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

// segment_of for LowerSetSequence and EvaluateCanonical.
IdVector<NodeId, int32_t> SegmentsOfPath(const LowerSetFamily& family, const VertexGraph& graph,
                                         const std::vector<int32_t>& sets);

}  // namespace ckplan
