// Words in plan files that the writer and the reader share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/problem/schedule/training_step.h"

namespace ckplan {

inline constexpr std::string_view kForwardStep = "f";
inline constexpr std::string_view kLossStep = "loss";
inline constexpr std::string_view kBackwardStep = "b";
inline constexpr std::string_view kFreeStep = "free";
inline constexpr std::string_view kFreeGradientStep = "free-gradient";
inline constexpr std::string_view kRunStep = "r";  // This and the next three: joint graphs only.
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

// The ids by which plan files refer to nodes and tensors of a graph of either kind.
struct PlanIds {
  std::string graph_name;
  IdVector<NodeId, int64_t> nodes;      // The operations of a joint graph.
  IdVector<TensorId, int64_t> tensors;  // The values of a joint graph.
  bool is_joint = false;

  std::string_view node_word() const { return is_joint ? "operation" : "node"; }
  std::string_view tensor_word() const { return is_joint ? "value" : "tensor"; }
};

PlanIds PlanIdsOf(const TrainingStep& step);

}  // namespace ckplan
