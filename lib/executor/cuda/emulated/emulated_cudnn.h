// The engines of the replaced cuDNN (emulated_cudnn.cc), for tests that choose them.
#pragma once

#include <cstdint>
#include <vector>

namespace ckplan::cuda {

// An engine that the replaced library recommends for all passes of convolutions and of attention.
struct EmulatedEngine {
  int64_t number = 0;
  int64_t workspace_bytes = 0;
  bool is_deterministic = true;
  bool has_tensor_cores = false;
  bool sums_in_float32 = true;
  bool makes_plans = true;   // If not, its configuration is recommended, but no plan can be made.
  bool is_fallback = false;  // Recommended only if fallbacks are asked for.
  bool keeps_score_gradients = true;  // In its workspace, for the gradients of attention.
};

// Replaces the engines, which are listed fastest first.
void SetEmulatedEngines(std::vector<EmulatedEngine> engines);

}  // namespace ckplan::cuda
