// Finds the largest count that fits, such as the number of samples in a batch within the memory of
// a device.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "lib/base/result.h"

namespace ckplan {

// No larger count is tried.
inline constexpr int64_t kMaxCount = 1'000'000'000;

// A count fits if its value, the fraction that it takes of what is allowed, is at most 1. The value
// is infinite if the count can never fit.
struct MeasuredCount {
  int64_t count = 0;
  double value = 0;
};

struct SizeSearch {
  std::function<Result<double>(int64_t count)> measure;
  // If set: returns, for a count that fits, the largest count that probably fits for the same
  // reason. The count after that is measured next.
  std::function<Result<int64_t>(int64_t fits)> reach = nullptr;
  std::optional<int64_t> first_guess = std::nullopt;
  // The search may end with a count whose value is less than 1 by no more than this.
  double tolerance = 0;
  // Values may fall below 1 again beyond the edge. If above 0, this many counts, evenly spaced over
  // the next sixteenth, are tried as well. If one of them fits, the search goes on from it.
  int64_t look_beyond = 0;
  // No larger count can fit.
  int64_t most = kMaxCount;
  // If above 0, large counts are not sought to the unit: of two counts that differ by less than one
  // part in this many, the search takes the first that it meets. So the number of measured counts
  // does not grow with them.
  int64_t parts = 0;
};

struct LargestSize {
  MeasuredCount fits;
  // The next count; absent if kMaxCount fits. With parts it may be a later one, and with a
  // tolerance a later one or absent.
  std::optional<MeasuredCount> does_not;
  bool is_last = false;  // Every count after it, up to SizeSearch::most, was measured.
};

// Searches at and above `fits`, which is known to fit. Values are nearly linear in the count, so
// the search follows the line through the last two; where the line misleads, it halves the gap.
Result<LargestSize> FindLargestSize(MeasuredCount fits, const SizeSearch& search);

}  // namespace ckplan
