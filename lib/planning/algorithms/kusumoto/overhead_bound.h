// A Lagrangian bound on the final overhead of a sequence of lower sets.
//
// A state at L with m cached may cache A - m more, where A is the maximum that can be cached when
// the last segment begins. Charging a price per cached byte and refunding that allowance gives a
// lower bound on the remaining overhead, at any price. The best of a few prices is used.
//
// Overheads are compared as keys: the overhead itself when minimising, its negative when
// maximising, so the smaller key is always better.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/algorithms/kusumoto/fitting_segments.h"
#include "lib/planning/algorithms/kusumoto/lower_sets.h"
#include "lib/planning/algorithms/kusumoto/set_workers.h"

namespace ckplan {

class OverheadBound {
 public:
  static constexpr int64_t kNoWay = std::numeric_limits<int64_t>::max() / 2;

  // `sign` is 1 to minimise the overhead, -1 to maximise it. Keeps references to its arguments.
  OverheadBound(const LowerSetFamily& family, int64_t sign, FittingSegments* segments,
                SetWorkers* workers);

  // Computes the bound. `useful` holds the sets from which V is reachable. `price` is a starting
  // point: the best price of an earlier bound, or negative. Returns the errors of the workers.
  Result<Done> Find(const SetSelection& useful, int64_t price);
  int64_t best_price() const { return prices_[FindBestPrice()]; }

  bool has_way(int32_t set) const { return to_go_[static_cast<size_t>(set)][0] != kNoWay; }

  // Returns a lower bound on the final key of a state at `set` with this key and cached memory.
  int64_t MinEndKey(int32_t set, int64_t key, Bytes cached) const;

  // Returns a lower bound on the key of the step from `below` to `set`. Ignores the overlap of the
  // two boundaries, so it visits no members.
  int64_t MinStepKey(int32_t set, int32_t below) const {
    const LowerSetFamily::Facts& to = family_.facts(set);
    const LowerSetFamily::Facts& from = family_.facts(below);
    const Cost more = to.time - from.time - to.boundary_time;
    const int64_t min_time = more.count() < 0 ? 0 : more.count();
    return sign_ > 0 ? min_time : -(more + std::min(to.boundary_time, from.boundary_time)).count();
  }

 private:
  // Priced costs are key * kKeyUnit + price * memory units * T(V), all far below 2^62: at most 2^24
  // memory units, 2^20 units of time, prices up to 2^16. Larger times and memories are shifted to
  // the right, which rounds keys and memory down, so the bound stays valid.
  static constexpr int64_t kMemoryUnits = int64_t{1} << 24;
  static constexpr int64_t kTimeUnits = int64_t{1} << 20;
  static constexpr int64_t kKeyUnit = kMemoryUnits << 10;
  static constexpr int64_t kMinPrice = 64;
  static constexpr int64_t kMaxPrice = int64_t{1} << 16;
  static constexpr size_t kPriceCount = 6;
  using Prices = std::array<int64_t, kPriceCount>;
  using Priced = std::array<int64_t, kPriceCount>;  // One cost for each price.

  int64_t MemoryUnits(Bytes bytes) const { return bytes.count() >> memory_shift_; }
  // Returns `costs` plus the cost of a step with this key and memory, at every price.
  Priced Add(const Priced& costs, int64_t key, Bytes cached) const;
  // Tells whether Add could be below `best` at some price for the step from `below` to `set`.
  // Visits no members.
  bool CanLower(const Priced& costs, int32_t set, int32_t below, const Priced& best) const {
    const Bytes more_cached = family_.boundary_memory(set) - family_.boundary_memory(below);
    const int64_t memory = MemoryUnits(std::max(Bytes(0), more_cached)) * total_time_;
    const int64_t key = (MinStepKey(set, below) >> time_shift_) * kKeyUnit;
    bool is_lower = false;
    for (size_t p = 0; p < kPriceCount; ++p) {
      is_lower |= costs[p] + key + prices_[p] * memory < best[p];
    }
    return is_lower;
  }
  static Prices PricesBetween(int64_t low, int64_t high);
  Result<Done> FindEndCached(const SetSelection& useful);
  std::optional<SetSelection> NarrowSetsOf(const SetSelection& useful) const;
  // Chooses prices around the best one in a wide range, using the sequences of the useful sets.
  // Charges `first`, some of these sets, first: see Charge.
  Result<Done> ChoosePrices(const std::optional<SetSelection>& first, const SetSelection& useful);
  Result<Done> Charge(const std::optional<SetSelection>& first, const SetSelection& useful);
  Result<Done> ChargeStepsTo(const SetSelection& above, const SetSelection& below);
  // Returns the index of the price with the highest bound for the empty set.
  size_t FindBestPrice() const;

  const LowerSetFamily& family_;
  const int64_t sign_;
  FittingSegments& segments_;
  SetWorkers& workers_;
  int memory_shift_ = 0;
  int time_shift_ = 0;
  int64_t total_time_ = 0;  // Measured in time units.
  Prices prices_{};         // The first is zero, the best price if memory is plentiful.
  Bytes end_cached_;
  std::vector<Priced> to_go_;  // The lowest charge of a known sequence from each set to V.
};

}  // namespace ckplan
