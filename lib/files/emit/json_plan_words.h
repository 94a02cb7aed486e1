// The words of plan files that both the writer and the reader use.
#pragma once

#include <string_view>

namespace ckplan {

inline constexpr std::string_view kForwardStep = "f";
inline constexpr std::string_view kLossStep = "loss";
inline constexpr std::string_view kBackwardStep = "b";
inline constexpr std::string_view kFreeStep = "free";
inline constexpr std::string_view kRunStep = "r";  // This and the next three are of joint graphs.
inline constexpr std::string_view kOutStep = "out";
inline constexpr std::string_view kDropStep = "drop";
inline constexpr std::string_view kInStep = "in";
inline constexpr std::string_view kOptimal = "optimal";
inline constexpr std::string_view kFeasible = "feasible";
inline constexpr std::string_view kLivenessFrees = "liveness";
inline constexpr std::string_view kExplicitFrees = "explicit";

// The kinds of memory at the peak.
inline constexpr std::string_view kLiveTensor = "t";
inline constexpr std::string_view kLiveGradient = "g";
inline constexpr std::string_view kLiveWorkspace = "w";

}  // namespace ckplan
