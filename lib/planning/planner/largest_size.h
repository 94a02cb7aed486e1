// Finds the largest count that fits, such as the largest batch that fits in a device's memory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "lib/base/result.h"

namespace ckplan {

// The search tries no larger count.
inline constexpr int64_t kMaxCount = 1'000'000'000;

// A count fits if its value, the fraction of the limit that it uses, is at most 1. The value is
// infinite if the count can never fit.
struct MeasuredCount {
  int64_t count = 0;
  double value = 0;
};

struct SizeSearch {
  std::function<Result<double>(int64_t count)> measure;
  // Optional. For a count that fits, returns the largest count that probably fits for the same
  // reason. The search measures the count after that next.
  std::function<Result<int64_t>(int64_t fits)> reach = nullptr;
  std::optional<int64_t> first_guess = std::nullopt;
  // The search may end at a count whose value is within this of 1.
  double tolerance = 0;
  // Values can drop below 1 again for larger counts. If above 0, the search also tries this many
  // counts, evenly spaced over the next sixteenth, and continues from any that fits.
  int64_t look_beyond = 0;
  // An upper bound: no larger count can fit.
  int64_t most = kMaxCount;
  // If above 0, large counts need not be exact: counts that differ by less than one part in this
  // many are equally good. This limits the number of measurements.
  int64_t parts = 0;
};

struct LargestSize {
  MeasuredCount fits;
  // The next count; absent if kMaxCount fits. With `parts` it may be a later one, and with
  // `tolerance` a later one or absent.
  std::optional<MeasuredCount> does_not;
  bool is_last = false;  // All later counts up to SizeSearch::most were measured.
};

// Searches upwards from `fits`, which is known to fit. Values are nearly linear in the count, so
// the search extrapolates from the last two and falls back to bisection.
Result<LargestSize> FindLargestSize(MeasuredCount fits, const SizeSearch& search);

}  // namespace ckplan
