// The largest count that fits: of samples in a batch, within the memory of a device.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "lib/base/result.h"

namespace ckplan {

// No larger count is tried.
inline constexpr int64_t kMaxCount = 1'000'000'000;

// How much of what is allowed a count takes: it fits up to 1, and is infinite if it never does.
struct MeasuredCount {
  int64_t count = 0;
  double value = 0;
};

struct EdgeSearch {
  std::function<Result<double>(int64_t count)> measure;
  // If set: of a count that fits, the largest that probably fits for the same reason. The one
  // behind that is measured next.
  std::function<Result<int64_t>(int64_t fits)> reach = nullptr;
  std::optional<int64_t> first_guess = std::nullopt;
  // Above 0 where a count may fit although one that is smaller by up to this part of it does not,
  // and where it takes longest to measure what does not fit. Then guesses keep away from that, and
  // in a gap no wider than this part the search ends at the first count that does not fit.
  double noise = 0;
  // The search may end with a count that takes all but this part of what is allowed.
  double tolerance = 0;
};

struct Edge {
  MeasuredCount fits;
  // The next one; absent if the largest of all counts fits. With a tolerance it may be a later one,
  // or absent.
  std::optional<MeasuredCount> does_not;
};

// At or above `fits`, which is known to fit. Measures are nearly linear in the count, so the line
// through the last two is followed; where it misleads, gaps are halved.
Result<Edge> FindEdge(MeasuredCount fits, const EdgeSearch& search);

}  // namespace ckplan
