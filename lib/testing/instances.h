// The number of random instances in a test.
#pragma once

#include <concepts>

namespace ckplan {

// Sanitizers make programs ten to thirty times slower. A few instances suffice to reveal the memory
// errors that they detect, so tests try fewer instances under sanitizers.
#ifdef CKPLAN_SANITIZED
inline constexpr bool kHasSanitizers = true;
#else
inline constexpr bool kHasSanitizers = false;
#endif

// Returns the number of instances to try: `count`, or an eighth of it under sanitizers. Apply it to
// expected counts of instances, too.
template <std::integral Count>
consteval Count Instances(Count count) {
  return kHasSanitizers ? (count + 7) / 8 : count;
}

}  // namespace ckplan
