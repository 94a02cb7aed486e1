// The tensors for whose gradients an optimizer keeps state. Some optimizers round the state of each
// tensor, or depend on its type, so the sum of their bytes is not enough (lib/planning/plan/
// optimizer_state.h).
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/units.h"

namespace ckplan {

// Tensors of one size and type.
struct OptimizedTensors {
  int64_t elements = 0;       // The elements of each tensor.
  int64_t element_bytes = 0;  // The bytes of each element, as parameters and gradients have it.
  int64_t count = 0;          // The number of such tensors.

  bool operator==(const OptimizedTensors&) const = default;
};

// What an optimizer keeps state for.
struct Optimized {
  Bytes bytes;  // The sum of the gradients.
  // Empty if only the sum is known, as from a graph file without them.
  std::vector<OptimizedTensors> tensors;
  // Whether a graph file says nothing about what is trained. `bytes` is then 0.
  bool is_unknown = false;

  bool operator==(const Optimized&) const = default;
};

// The largest number of bytes of one element: a complex number of two float64.
inline constexpr int64_t kMaxElementBytes = 16;

// Returns the sum of the tensors' sizes, which must not overflow.
Bytes SizeOf(const std::vector<OptimizedTensors>& tensors);

// Returns the tensors by ascending type and size, each size and type once, without empty tensors.
std::vector<OptimizedTensors> Merged(std::vector<OptimizedTensors> tensors);

}  // namespace ckplan
