// The emulated cuDNN's engines (emulated_cudnn.cc), for tests that choose them.
#pragma once

#include <cstdint>
#include <vector>

namespace ckplan::cuda {

// An engine that the emulated library recommends for all passes of convolutions and attention.
struct EmulatedEngine {
  int64_t number = 0;
  int64_t workspace_bytes = 0;
  bool is_deterministic = true;
  bool has_tensor_cores = false;
  bool sums_in_float32 = true;
  bool makes_plans = true;   // If false, its configuration is recommended but cannot be planned.
  bool is_fallback = false;  // Recommended only when fallbacks are requested.
  bool keeps_score_gradients = true;  // In its workspace, for attention gradients.
};

// Replaces the engines; the fastest comes first.
void SetEmulatedEngines(std::vector<EmulatedEngine> engines);

}  // namespace ckplan::cuda
