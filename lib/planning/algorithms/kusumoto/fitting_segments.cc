#include "lib/planning/algorithms/kusumoto/fitting_segments.h"

#include <utility>

namespace ckplan {

Result<FittingSegments::Arrivals> FittingSegments::FindMinCached(const SetSelection& useful) {
  Arrivals arrivals;
  arrivals.cached.assign(static_cast<size_t>(family_.size()), kNoBytes);
  arrivals.peak.resize(static_cast<size_t>(family_.size()));
  arrivals.cached[0] = Bytes(0);
  const auto arrive = [&](size_t worker, int32_t set) {
    Bytes here = kNoBytes;
    Bytes peak;
    ForEach(
        worker, set, useful,
        [&](int32_t below, Bytes max_cached) {
          const Bytes cached = arrivals.cached[static_cast<size_t>(below)];
          return cached < here && cached <= max_cached && cached + MinMoreCached(set, below) < here;
        },
        [&](int32_t below, Bytes max_cached) {
          const auto from = static_cast<size_t>(below);
          const Bytes cached = arrivals.cached[from] + Between(family_, set, below).more_cached;
          if (cached >= here) return;
          here = cached;
          peak = std::max(arrivals.peak[from], arrivals.cached[from] + budget_ - max_cached);
        });
    arrivals.cached[static_cast<size_t>(set)] = here;
    arrivals.peak[static_cast<size_t>(set)] = peak;
  };
  CKPLAN_RETURN_IF_ERROR(workers_.Upwards(useful.after_first(), arrive));
  return arrivals;
}

Result<std::vector<Bytes>> FittingSegments::FindMaxCached(const SetSelection& useful) {
  // Each worker has its own numbers, of which the largest counts.
  std::vector<std::vector<Bytes>> of_workers(
      workers_.count(), std::vector<Bytes>(static_cast<size_t>(family_.size()), Bytes(-1)));
  of_workers[0].back() = kNoBytes;
  const auto largest_at = [&](int32_t set) {
    Bytes largest(-1);
    for (const auto& max_cached : of_workers) {
      largest = std::max(largest, max_cached[static_cast<size_t>(set)]);
    }
    return largest;
  };
  const auto leave = [&](size_t worker, int32_t set) {
    const Bytes here = largest_at(set);
    if (here < Bytes(0)) return;
    std::vector<Bytes>& best = of_workers[worker];
    ForEach(
        worker, set, useful,
        [&](int32_t below, Bytes max_cached) {
          const Bytes known = best[static_cast<size_t>(below)];
          return max_cached > known && here - MinMoreCached(set, below) > known;
        },
        [&](int32_t below, Bytes max_cached) {
          const Bytes cached = here - Between(family_, set, below).more_cached;
          Bytes& known = best[static_cast<size_t>(below)];
          known = std::max(known, std::min(max_cached, cached));
        });
  };
  CKPLAN_RETURN_IF_ERROR(workers_.Downwards(useful.after_first(), leave));
  for (int32_t set = 0; set < family_.size(); ++set) {
    of_workers[0][static_cast<size_t>(set)] = largest_at(set);
  }
  return std::move(of_workers[0]);
}

Result<FittingSegments::Passable> FittingSegments::FindPassable() {
  const SetSelection all(family_);
  CKPLAN_ASSIGN_OR_RETURN(const Arrivals arrivals, FindMinCached(all));
  if (arrivals.cached.back() == kNoBytes) return Passable();
  CKPLAN_ASSIGN_OR_RETURN(std::vector<Bytes> max_cached, FindMaxCached(all));
  return Passable{PassableOf(arrivals, max_cached, all), std::move(max_cached)};
}

SetSelection FittingSegments::PassableOf(const Arrivals& arrivals,
                                         const std::vector<Bytes>& max_cached,
                                         const SetSelection& useful) const {
  std::vector<int32_t> passable;
  for (const int32_t set : useful.sets) {
    const auto i = static_cast<size_t>(set);
    if (arrivals.cached[i] <= max_cached[i]) passable.push_back(set);
  }
  return SetSelection(family_, std::move(passable));
}

}  // namespace ckplan
