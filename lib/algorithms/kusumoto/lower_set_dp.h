// The dynamic program of Kusumoto et al. 2019 (Alg. 1) over a family of lower sets.
//
// Idea. opt[L, t] is the least memory cached, M(U), among sequences of lower sets that end in L
// with overhead t and whose every segment fits the budget:
//
//   from (L, t, m) to L' > L      fits if  m + 2 M(V') + neighbours(L') <= B        V' = L' \ L
//                                 t' = t + T(V' \ d(L'))       m' = m + M(d(L') \ L)
//
// Here L' pulls from its subsets in ascending order of memory, so no table of pairs exists, subsets
// whose segment alone exceeds B are never visited, and one row of best[t] serves all of them.
//
// Prunings, each exact (tests compare them with brute force):
//   - 2 M(V') + neighbours(L') <= B fails for all smaller L once it fails for L;
//   - a state is dropped if another at the same L has no more memory and no worse overhead;
//   - a pass from V downwards finds how much memory may be cached at each L so that V can be
//     reached at all; states with more are dropped, so the table holds no dead ends;
//   - a Lagrangian bound on the overhead to go: memory is priced, and each state is charged for
//     what it may yet cache. States that cannot end within a guess of the optimum are dropped; if
//     no sequence is left, the guess was too low and is raised.
//
// Cost: O(P T) time for P pairs of subsets that fit and T overheads at the worst; O(S T) memory
// for S sets at the worst.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/algorithms/kusumoto/lower_sets.h"
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
};

// The total time of a family's graph may be at most this: the table has a column per unit of it.
inline constexpr int64_t kMaxDpColumns = 1 << 20;

// What one call of Solve learns for the next one on the same family: it saves work, and never
// changes a result.
struct SearchHints {
  int64_t price = -1;  // The best price of a byte; -1 before the first call.
  int64_t slack = 0;   // By how much the optimum was above its bound.
};

class LowerSetDp {
 public:
  // Keeps a reference to `family`, whose working memory it uses.
  explicit LowerSetDp(LowerSetFamily* family) : family_(*family) {}

  // The least B for which some sequence has M <= B (Eq. 2). `known` is a B that is known to be
  // feasible, such as that of a smaller family; the nearer it is, the faster is the search.
  // kTimeout: stopped. kUnsupported: more than `limits.max_transitions`.
  Result<Bytes> MinBudget(std::optional<Bytes> known, const DpLimits& limits);

  // The best sequence under budget B, or nothing if there is none. Errors as above.
  Result<std::optional<LowerSetPath>> Solve(Bytes budget, OverheadGoal goal,
                                            const DpLimits& limits);

 private:
  LowerSetFamily& family_;
  SearchHints hints_;
};

// segment_of for LowerSetSequence and EvaluateCanonical.
IdVector<NodeId, int32_t> SegmentsOfPath(const LowerSetFamily& family, const VertexGraph& graph,
                                         const std::vector<int32_t>& sets);

}  // namespace ckplan
