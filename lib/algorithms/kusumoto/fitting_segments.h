// Which segments between two lower sets fit a budget by Eq. 2 of Kusumoto et al. 2019: the graph
// that lower_set_dp.cc searches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/algorithms/kusumoto/lower_sets.h"
#include "lib/algorithms/kusumoto/work_meter.h"
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
  // Keeps references to `family`, whose working memory it uses, and to `meter`.
  FittingSegments(LowerSetFamily* family, Bytes budget, WorkMeter* meter)
      : family_(*family), budget_(budget), meter_(*meter) {}

  // The least memory cached on any way to each set, with the highest Eq. 2 value on one such way.
  struct Arrival {
    Bytes cached = kNoBytes;  // kNoBytes: no sequence leads here.
    Bytes peak;
  };
  // Considers only sequences of `useful` sets: an ascending list with the first and the last set.
  Result<std::vector<Arrival>> FindMinCached(std::span<const int32_t> useful);

  // How much may be cached on arrival at each set so that V can be reached; negative: it cannot.
  Result<std::vector<Bytes>> FindMaxCached(std::span<const int32_t> useful);

  // Visits the subsets of a set from which a segment fits, with the maximum that may be cached
  // there: those in the ascending list `candidates`, and perhaps others.
  template <typename Visit>
  void ForEach(int32_t set, std::span<const int32_t> candidates, Visit visit) {
    const LowerSetFamily::Facts& facts = family_.facts(set);
    const Bytes left = budget_ - facts.neighbours;
    if (left < Bytes(0)) return;
    int64_t pairs = 0;
    family_.ForEachSubset(set, Bytes(left.count() / 2), candidates, [&](int32_t below) {
      ++pairs;
      const LowerSetFamily::Facts& from = family_.facts(below);
      // Cannot overflow: 0 <= left, and TensorGraph::Create bounds twice the memory of any set.
      const Bytes max_cached(left.count() - 2 * (facts.memory.count() - from.memory.count()));
      // Every sequence that leads there caches at least the boundary.
      if (max_cached >= from.boundary_memory) visit(below, max_cached);
    });
    meter_.Add(pairs);
  }

 private:
  // A lower bound on Between().more_cached that needs no look at the members: by how much the
  // boundary of `set` is larger.
  Bytes MinMoreCached(int32_t set, int32_t below) const {
    const int64_t more =
        family_.facts(set).boundary_memory.count() - family_.facts(below).boundary_memory.count();
    return Bytes(std::max<int64_t>(0, more));
  }

  LowerSetFamily& family_;
  const Bytes budget_;
  WorkMeter& meter_;
};

}  // namespace ckplan
