#include "lib/algorithms/kusumoto/fitting_segments.h"

namespace ckplan {

Result<std::vector<FittingSegments::Arrival>> FittingSegments::FindLeastCached(
    std::span<const int32_t> useful) {
  std::vector<Arrival> arrivals(static_cast<size_t>(family_.size()));
  arrivals[0] = {Bytes(0), Bytes(0)};
  std::vector<int32_t> reached = {0};
  for (const int32_t set : useful.subspan(1)) {
    CKPLAN_RETURN_IF_ERROR(meter_.Check());
    Arrival& here = arrivals[static_cast<size_t>(set)];
    ForEach(set, reached, [&](int32_t below, Bytes most_cached) {
      const Arrival& from = arrivals[static_cast<size_t>(below)];
      if (from.cached > most_cached) return;
      if (from.cached + LeastMoreCached(set, below) >= here.cached) return;
      const Bytes cached = from.cached + Between(family_, set, below).more_cached;
      if (cached >= here.cached) return;
      here = {cached, std::max(from.peak, from.cached + budget_ - most_cached)};
    });
    if (here.cached != kNoBytes) reached.push_back(set);
  }
  return arrivals;
}

Result<std::vector<Bytes>> FittingSegments::FindMostCached(std::span<const int32_t> useful) {
  std::vector<Bytes> most(static_cast<size_t>(family_.size()), Bytes(-1));
  most.back() = kNoBytes;
  for (size_t i = useful.size(); i-- > 1;) {
    const int32_t set = useful[i];
    CKPLAN_RETURN_IF_ERROR(meter_.Check());
    const Bytes here = most[static_cast<size_t>(set)];
    if (here < Bytes(0)) continue;
    ForEach(set, useful, [&](int32_t below, Bytes most_cached) {
      Bytes& best = most[static_cast<size_t>(below)];
      if (most_cached <= best || here - LeastMoreCached(set, below) <= best) return;
      best = std::max(best, std::min(most_cached, here - Between(family_, set, below).more_cached));
    });
  }
  return most;
}

}  // namespace ckplan
