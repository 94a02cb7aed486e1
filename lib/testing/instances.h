// How many random instances tests look at.
#pragma once

#include <concepts>

namespace ckplan {

// Sanitizers make programs ten to thirty times slower. The faults of memory that they are after
// show in the first instances of a kind, so tests look at fewer there; builds without them look at
// all.
#ifdef CKPLAN_SANITIZED
inline constexpr bool kHasSanitizers = true;
#else
inline constexpr bool kHasSanitizers = false;
#endif

// How many random instances a test looks at: `count`, or with sanitizers an eighth of it.
// What is counted of them in the end is asked for in the same measure.
template <std::integral Count>
consteval Count Instances(Count count) {
  return kHasSanitizers ? (count + 7) / 8 : count;
}

}  // namespace ckplan
