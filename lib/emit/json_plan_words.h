// The words of plan files that their writer and their reader share.
#pragma once

#include <string_view>

namespace ckplan {

inline constexpr std::string_view kForwardStep = "f";
inline constexpr std::string_view kLossStep = "loss";
inline constexpr std::string_view kBackwardStep = "b";
inline constexpr std::string_view kFreeStep = "free";
inline constexpr std::string_view kRunStep = "r";  // Of joint graphs, and the only one there.
inline constexpr std::string_view kOptimal = "optimal";
inline constexpr std::string_view kFeasible = "feasible";
inline constexpr std::string_view kLivenessFrees = "liveness";
inline constexpr std::string_view kExplicitFrees = "explicit";

// What is in memory at the peak.
inline constexpr std::string_view kLiveTensor = "t";
inline constexpr std::string_view kLiveGradient = "g";
inline constexpr std::string_view kLiveWorkspace = "w";

}  // namespace ckplan
