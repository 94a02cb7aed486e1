// The number of random instances that a test tries.
#pragma once

#include <concepts>

namespace ckplan {

// Sanitizers make programs ten to thirty times slower. The memory faults that they look for show in
// the first instances of a kind, so tests try fewer instances under sanitizers and all of them
// otherwise.
#ifdef CKPLAN_SANITIZED
inline constexpr bool kHasSanitizers = true;
#else
inline constexpr bool kHasSanitizers = false;
#endif

// Returns the number of random instances that a test tries: `count`, or an eighth of it under
// sanitizers. Scale expected counts of instances by the same function.
template <std::integral Count>
consteval Count Instances(Count count) {
  return kHasSanitizers ? (count + 7) / 8 : count;
}

}  // namespace ckplan
