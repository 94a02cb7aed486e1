#include "lib/algorithms/kusumoto/fitting_segments.h"

namespace ckplan {

Result<std::vector<FittingSegments::Arrival>> FittingSegments::FindMinCached(
    std::span<const int32_t> useful) {
  std::vector<Arrival> arrivals(static_cast<size_t>(family_.size()));
  arrivals[0] = {Bytes(0), Bytes(0)};
  std::vector<int32_t> reached = {0};
  for (const int32_t set : useful.subspan(1)) {
    CKPLAN_RETURN_IF_ERROR(meter_.Check());
    Arrival& here = arrivals[static_cast<size_t>(set)];
    ForEach(set, reached, [&](int32_t below, Bytes max_cached) {
      const Arrival& from = arrivals[static_cast<size_t>(below)];
      if (from.cached > max_cached) return;
      if (from.cached + MinMoreCached(set, below) >= here.cached) return;
      const Bytes cached = from.cached + Between(family_, set, below).more_cached;
      if (cached >= here.cached) return;
      here = {cached, std::max(from.peak, from.cached + budget_ - max_cached)};
    });
    if (here.cached != kNoBytes) reached.push_back(set);
  }
  return arrivals;
}

Result<std::vector<Bytes>> FittingSegments::FindMaxCached(std::span<const int32_t> useful) {
  std::vector<Bytes> max_cached_at(static_cast<size_t>(family_.size()), Bytes(-1));
  max_cached_at.back() = kNoBytes;
  for (size_t i = useful.size(); i-- > 1;) {
    const int32_t set = useful[i];
    CKPLAN_RETURN_IF_ERROR(meter_.Check());
    const Bytes here = max_cached_at[static_cast<size_t>(set)];
    if (here < Bytes(0)) continue;
    ForEach(set, useful, [&](int32_t below, Bytes max_cached) {
      Bytes& best = max_cached_at[static_cast<size_t>(below)];
      if (max_cached <= best || here - MinMoreCached(set, below) <= best) return;
      best = std::max(best, std::min(max_cached, here - Between(family_, set, below).more_cached));
    });
  }
  return max_cached_at;
}

}  // namespace ckplan
