// Which segments between two lower sets fit a budget by Eq. 2 of Kusumoto et al. 2019: the graph
// that lower_set_dp.cc searches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lib/algorithms/kusumoto/lower_sets.h"
#include "lib/algorithms/kusumoto/set_workers.h"
#include "lib/base/result.h"
#include "lib/base/units.h"

namespace ckplan {

inline constexpr Bytes kNoBytes = Bytes::Max();

// What a step from a set to a larger one takes.
struct Transition {
  Bytes more_cached;  // M(d(L') \ L)
  int64_t more_time;  // T(V' \ d(L'))
};

inline Transition Between(const LowerSetFamily& family, int32_t set, int32_t below) {
  const LowerSetFamily::Facts& to = family.facts(set);
  const LowerSetFamily::Facts& from = family.facts(below);
  const LowerSetFamily::Overlap overlap = family.BoundaryWithin(set, below);
  // Differences of totals that TensorGraph::Create bounds, in the hottest loops.
  return {Bytes(to.boundary_memory.count() - overlap.memory.count()),
          to.time.count() - from.time.count() - (to.boundary_time.count() - overlap.time.count())};
}

// The family under one budget: which segments fit, and two numbers for each set that say whether
// any sequence through it fits, whatever its overhead.
class FittingSegments {
 public:
  // Keeps references to both.
  FittingSegments(const LowerSetFamily& family, Bytes budget, SetWorkers* workers)
      : family_(family), budget_(budget), workers_(*workers) {}

  // The least memory cached on any way to each set, with the highest Eq. 2 value on one such way.
  struct Arrivals {
    std::vector<Bytes> cached;  // kNoBytes: no sequence leads here.
    std::vector<Bytes> peak;
  };
  // Considers only sequences of `useful` sets, of which the first and the last set are some.
  Result<Arrivals> FindMinCached(const SetSelection& useful);

  // How much may be cached on arrival at each set so that V can be reached; negative: it cannot.
  Result<std::vector<Bytes>> FindMaxCached(const SetSelection& useful);

  // The sets that a sequence within the budget can pass, and FindMaxCached for them. No sets at all
  // where no sequence is within the budget.
  struct Passable {
    SetSelection sets;
    std::vector<Bytes> max_cached;
  };
  Result<Passable> FindPassable();
  // Those of the useful sets at which the two do not contradict each other.
  SetSelection PassableOf(const Arrivals& arrivals, const std::vector<Bytes>& max_cached,
                          const SetSelection& useful) const;

  // Visits the subsets of a set from which a segment fits, with the maximum that may be cached
  // there: those of the selected sets for which may_matter(below, max_cached) holds.
  template <typename MayMatter, typename Visit>
  void ForEach(size_t worker, int32_t set, const SetSelection& selected, MayMatter may_matter,
               Visit visit) {
    const Bytes left = budget_ - family_.facts(set).neighbours;
    if (left < Bytes(0)) return;
    const Bytes at_set = left - 2 * family_.memory(set);
    const auto max_cached = [&](int32_t below) { return at_set + 2 * family_.memory(below); };
    const int64_t looked_at = workers_.finder(worker).ForEach(
        set, Bytes(left.count() / 2), selected,
        [&](int32_t below) {
          // Every sequence that leads there caches at least the boundary.
          const Bytes most = max_cached(below);
          return may_matter(below, most) && most >= family_.boundary_memory(below);
        },
        [&](int32_t below) { visit(below, max_cached(below)); });
    workers_.meter().Add(looked_at);
  }

 private:
  // A lower bound on Between().more_cached that needs no look at the members: by how much the
  // boundary of `set` is larger.
  Bytes MinMoreCached(int32_t set, int32_t below) const {
    return std::max(Bytes(0), family_.boundary_memory(set) - family_.boundary_memory(below));
  }

  const LowerSetFamily& family_;
  const Bytes budget_;
  SetWorkers& workers_;
};

}  // namespace ckplan
