// The objectives that a request can choose from.
#pragma once

#include <cstddef>
#include <string_view>

namespace ckplan {

// kAuto minimizes time, or memory if no time-optimal plan fits in the budget, as in section 4.4 of
// Kusumoto et al. 2019. A plan states which of the two it was made for.
enum class Objective { kAuto, kTime, kMemory };

inline constexpr std::string_view kObjectiveWords[] = {"auto", "time", "memory"};
inline std::string_view NameOf(Objective objective) {
  return kObjectiveWords[static_cast<size_t>(objective)];
}

// The order of a plan's steps: backward as the reverse of forward, or any order in which all inputs
// are available and sums of gradients keep their bits (lib/problem/schedule/schedule.h).
enum class StepOrder { kModel, kFree };

inline constexpr std::string_view kStepOrderWords[] = {"model", "free"};
inline std::string_view NameOf(StepOrder order) {
  return kStepOrderWords[static_cast<size_t>(order)];
}

}  // namespace ckplan
