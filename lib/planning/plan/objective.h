// The goals among which a request can choose, if the algorithm leaves the choice.
#pragma once

#include <cstddef>
#include <string_view>

namespace ckplan {

// kAuto means least time, or memory-centric if least time has no plan within the budget, as in
// section 4.4 of Kusumoto et al. 2019. A plan says which of the two goals it was made for.
enum class Objective { kAuto, kTime, kMemory };

inline constexpr std::string_view kObjectiveWords[] = {"auto", "time", "memory"};
inline std::string_view NameOf(Objective objective) {
  return kObjectiveWords[static_cast<size_t>(objective)];
}

// The orders in which the steps of a plan may come: forward in one order and backward in its
// reverse, or in any order in which everything that is read is there and sums of gradients keep
// their bits (lib/problem/schedule/schedule.h).
enum class StepOrder { kModel, kFree };

inline constexpr std::string_view kStepOrderWords[] = {"model", "free"};
inline std::string_view NameOf(StepOrder order) {
  return kStepOrderWords[static_cast<size_t>(order)];
}

}  // namespace ckplan
