#include "lib/planning/algorithms/kusumoto/overhead_bound.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ckplan {

OverheadBound::OverheadBound(const LowerSetFamily& family, int64_t sign, FittingSegments* segments,
                             SetWorkers* workers)
    : family_(family), sign_(sign), segments_(*segments), workers_(*workers) {
  while ((family.whole().memory.count() >> memory_shift_) >= kMemoryUnits) ++memory_shift_;
  while ((family.whole().time.count() >> time_shift_) >= kTimeUnits) ++time_shift_;
  total_time_ = family.whole().time.count() >> time_shift_;
}

// The bound is concave in the price, so the best price lies between the neighbours of the best
// price tried. Each search begins near the last one's best price.
//
// With many sets, the sequences of some of them suggest the first prices. If the best price is then
// the first or last one, a better one may lie beyond, so all sets are used to choose.
Result<Done> OverheadBound::Find(const SetSelection& useful, int64_t price) {
  CKPLAN_RETURN_IF_ERROR(FindEndCached(useful));
  const std::optional<SetSelection> narrow = NarrowSetsOf(useful);
  if (price > 0) {
    prices_ = PricesBetween(std::max<int64_t>(1, price / 2), price * 8 / 5 + 1);
    prices_[0] = 0;
    return Charge(narrow, useful);
  }
  if (narrow) {
    CKPLAN_RETURN_IF_ERROR(ChoosePrices(std::nullopt, *narrow));
    CKPLAN_RETURN_IF_ERROR(Charge(narrow, useful));
    const size_t best = FindBestPrice();
    const bool does_not_bind = best == 0 && prices_[1] < 2 * kMinPrice;
    if (does_not_bind || (best > 1 && best < kPriceCount - 1)) return Done{};
  }
  CKPLAN_RETURN_IF_ERROR(ChoosePrices(narrow, useful));
  return Charge(narrow, useful);
}

Result<Done> OverheadBound::ChoosePrices(const std::optional<SetSelection>& first,
                                         const SetSelection& useful) {
  prices_ = PricesBetween(kMinPrice, kMaxPrice / 4);
  CKPLAN_RETURN_IF_ERROR(Charge(first, useful));
  const size_t best = FindBestPrice();
  const int64_t low = prices_[best == 0 ? 0 : best - 1];
  prices_ = PricesBetween(std::max<int64_t>(1, low), prices_[std::min(best + 1, kPriceCount - 1)]);
  prices_[0] = 0;
  return Done{};
}

// Returns V and the sets to which only one node can be added, at most one per node. Returns nothing
// if the useful sets are few, or are closures.
std::optional<SetSelection> OverheadBound::NarrowSetsOf(const SetSelection& useful) const {
  constexpr size_t kMany = 2048;
  if (!family_.has_all() || useful.sets.size() < kMany) return std::nullopt;
  std::vector<int32_t> narrow;
  for (const int32_t set : useful.sets) {
    if (set == 0 || family_.additions(set).size() <= 1) narrow.push_back(set);
  }
  return SetSelection(family_, std::move(narrow));
}

int64_t OverheadBound::MinEndKey(int32_t set, int64_t key, Bytes cached) const {
  const Priced& to_go = to_go_[static_cast<size_t>(set)];
  if (to_go[0] == kNoWay) return kNoWay;
  const int64_t allowance =
      (MemoryUnits(std::max(Bytes(0), end_cached_ - cached)) + 1) * total_time_;
  int64_t bound = to_go[0] - prices_[0] * allowance;
  for (size_t p = 1; p < kPriceCount; ++p) {
    bound = std::max(bound, to_go[p] - prices_[p] * allowance);
  }
  // Keys are integers, so round down, even below zero.
  const int64_t units = bound >= 0 ? bound / kKeyUnit : -((-bound + kKeyUnit - 1) / kKeyUnit);
  return key + units * (int64_t{1} << time_shift_);
}

OverheadBound::Priced OverheadBound::Add(const Priced& costs, int64_t key, Bytes cached) const {
  const int64_t memory = MemoryUnits(cached) * total_time_;
  const int64_t key_units = key >> time_shift_;
  Priced sums;
  for (size_t p = 0; p < kPriceCount; ++p) {
    sums[p] = costs[p] + key_units * kKeyUnit + prices_[p] * memory;
  }
  return sums;
}

// Returns prices in geometric progression. They only give bounds, so rounding does not matter.
OverheadBound::Prices OverheadBound::PricesBetween(int64_t low, int64_t high) {
  Prices prices;
  const double ratio = std::pow(static_cast<double>(high) / static_cast<double>(low),
                                1.0 / static_cast<double>(kPriceCount - 1));
  double price = static_cast<double>(low);
  for (size_t p = 0; p < kPriceCount; ++p, price *= ratio) {
    prices[p] = std::min(kMaxPrice, static_cast<int64_t>(price) + 1);
  }
  return prices;
}

// Finds the maximum that can be cached when the last segment begins.
Result<Done> OverheadBound::FindEndCached(const SetSelection& useful) {
  end_cached_ = Bytes(0);
  segments_.ForEach(
      0, family_.size() - 1, useful, [](int32_t, Bytes) { return true; },
      [&](int32_t, Bytes max_cached) { end_cached_ = std::max(end_cached_, max_cached); });
  return workers_.meter().Check();
}

// Charges the sequences of the useful sets. Charges sequences within the `first` sets first: then
// most later pairs of sets give no lower charge, which CanLower detects at once.
Result<Done> OverheadBound::Charge(const std::optional<SetSelection>& first,
                                   const SetSelection& useful) {
  Priced no_way;
  no_way.fill(kNoWay);
  to_go_.assign(static_cast<size_t>(family_.size()), no_way);
  to_go_.back().fill(0);
  if (first) CKPLAN_RETURN_IF_ERROR(ChargeStepsTo(*first, useful));
  return ChargeStepsTo(useful, useful);
}

// Lowers to_go_[L] of the sets `below` to the lowest charge, at every price, over all known
// sequences from L to V and those that begin with a step to a set in `above`. Each worker has its
// own numbers; the minimum counts.
Result<Done> OverheadBound::ChargeStepsTo(const SetSelection& above, const SetSelection& below) {
  std::vector<std::vector<Priced>> of_workers(workers_.count(), to_go_);
  const auto lower = [](Priced* a, const Priced& b) {
    for (size_t p = 0; p < kPriceCount; ++p) (*a)[p] = std::min((*a)[p], b[p]);
  };
  const auto lowest_at = [&](int32_t set) {
    Priced lowest = to_go_[static_cast<size_t>(set)];
    for (const auto& to_go : of_workers) lower(&lowest, to_go[static_cast<size_t>(set)]);
    return lowest;
  };
  const auto charge = [&](size_t worker, int32_t set) {
    const Priced from = lowest_at(set);
    if (from[0] == kNoWay) return;
    std::vector<Priced>& to_go = of_workers[worker];
    segments_.ForEach(
        worker, set, below, [](int32_t, Bytes) { return true; },
        [&](int32_t subset, Bytes) {
          Priced& best = to_go[static_cast<size_t>(subset)];
          if (!CanLower(from, set, subset, best)) return;
          const Transition step = Between(family_, set, subset);
          lower(&best, Add(from, sign_ * step.more_time, step.more_cached));
        });
  };
  CKPLAN_RETURN_IF_ERROR(workers_.RunDownwards(above.after_first(), charge));
  for (int32_t set = 0; set < family_.size(); ++set) {
    to_go_[static_cast<size_t>(set)] = lowest_at(set);
  }
  return Done{};
}

size_t OverheadBound::FindBestPrice() const {
  const Priced& to_go = to_go_[0];
  const int64_t allowance = (MemoryUnits(end_cached_) + 1) * total_time_;
  size_t best = 0;
  for (size_t p = 1; p < kPriceCount; ++p) {
    if (to_go[p] - prices_[p] * allowance > to_go[best] - prices_[best] * allowance) best = p;
  }
  return best;
}

}  // namespace ckplan
