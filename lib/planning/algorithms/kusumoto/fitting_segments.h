// Finds the segments between two lower sets that fit a budget by Eq. 2 of Kusumoto et al. 2019: the
// search graph of lower_set_dp.cc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/algorithms/kusumoto/lower_sets.h"
#include "lib/planning/algorithms/kusumoto/set_workers.h"

namespace ckplan {

inline constexpr Bytes kNoBytes = Bytes::Max();

// The costs of a step from a set to a larger one.
struct Transition {
  Bytes more_cached;  // M(d(L') \ L)
  int64_t more_time;  // T(V' \ d(L'))
};

inline Transition Between(const LowerSetFamily& family, int32_t set, int32_t below) {
  const LowerSetFamily::Facts& to = family.facts(set);
  const LowerSetFamily::Facts& from = family.facts(below);
  const LowerSetFamily::Overlap overlap = family.BoundaryWithin(set, below);
  // Raw int64 for speed in the innermost loops; it can't overflow, because TensorGraph::Create
  // bounds the totals.
  return {Bytes(to.boundary_memory.count() - overlap.memory.count()),
          to.time.count() - from.time.count() - (to.boundary_time.count() - overlap.time.count())};
}

// The family under one budget: the segments that fit and, for each set, two numbers that tell
// whether any sequence through it fits, regardless of overhead.
class FittingSegments {
 public:
  // Keeps references to the family and the workers.
  FittingSegments(const LowerSetFamily& family, Bytes budget, SetWorkers* workers)
      : family_(family), budget_(budget), workers_(*workers) {}

  // For each set, the least memory cached on any way to it, and the highest Eq. 2 value on one such
  // way.
  struct Arrivals {
    std::vector<Bytes> cached;  // kNoBytes: no sequence leads here.
    std::vector<Bytes> peak;
  };
  // Considers only sequences of `useful` sets, which must include the first and last set.
  Result<Arrivals> FindMinCached(const SetSelection& useful);

  // Returns, for each set, how much may be cached on arrival so that V is still reachable; a
  // negative value means that V is unreachable.
  Result<std::vector<Bytes>> FindMaxCached(const SetSelection& useful);

  // The sets that a sequence within the budget can pass, and FindMaxCached for them. Empty if no
  // sequence fits the budget.
  struct Passable {
    SetSelection sets;
    std::vector<Bytes> max_cached;
  };
  Result<Passable> FindPassable();
  // Returns the useful sets where the cached memory is within the maximum.
  SetSelection SelectPassable(const Arrivals& arrivals, const std::vector<Bytes>& max_cached,
                              const SetSelection& useful) const;

  // Visits the subsets of `set` from which a segment fits, with the maximum that may be cached
  // there. Visits only selected sets for which is_relevant(below, max_cached) holds.
  template <typename IsRelevant, typename Visit>
  void ForEach(size_t worker, int32_t set, const SetSelection& selected, IsRelevant is_relevant,
               Visit visit) {
    const Bytes left = budget_ - family_.facts(set).neighbours;
    if (left < Bytes(0)) return;
    const Bytes at_set = left - 2 * family_.memory(set);
    const auto max_cached = [&](int32_t below) { return at_set + 2 * family_.memory(below); };
    const int64_t looked_at = workers_.finder(worker).ForEach(
        set, Bytes(left.count() / 2), selected,
        [&](int32_t below) {
          // Every sequence to that set caches at least the boundary.
          const Bytes most = max_cached(below);
          return is_relevant(below, most) && most >= family_.boundary_memory(below);
        },
        [&](int32_t below) { visit(below, max_cached(below)); });
    workers_.meter().Add(looked_at);
  }

 private:
  // Returns a lower bound on Between().more_cached without visiting members: the growth of the
  // boundary's memory.
  Bytes MinMoreCached(int32_t set, int32_t below) const {
    return std::max(Bytes(0), family_.boundary_memory(set) - family_.boundary_memory(below));
  }

  const LowerSetFamily& family_;
  const Bytes budget_;
  SetWorkers& workers_;
};

// The lowest budget of Eq. 2 (Kusumoto et al. 2019) that some sequence of lower sets fits.
struct MinBudgetResult {
  Bytes budget;
  // The sets that can be passed within that budget, if known.
  std::optional<FittingSegments::Passable> passable;
};

// `known` is a budget known to be feasible, such as that of a smaller family; the closer it is, the
// faster the search. Returns the errors of the workers.
Result<MinBudgetResult> FindMinBudget(const LowerSetFamily& family, std::optional<Bytes> known,
                                      SetWorkers* workers);

}  // namespace ckplan
