// The constants of a model one by one. Their sizes and readers decide how they are divided among
// devices, and which of them each stage of a pipeline holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/units.h"

namespace ckplan {

// The tensors for whose gradients an optimizer keeps state. Some optimizers round the state of each
// tensor, or depend on its type, so the sum of their bytes is not enough (lib/planning/plan/
// optimizer_state.h).

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

struct Parameter {
  enum class Kind : uint8_t {
    kTrained,  // It has a gradient and optimizer state.
    kFrozen,   // A parameter of the original program that is not trained.
    kBuffer,   // State that is not a parameter: running statistics, masks, quantized weights.
  };
  std::string name;
  Kind kind = Kind::kTrained;
  Bytes bytes;
  int64_t elements = 0;
  int64_t rows = 1;             // The size of its first dimension; 1 for a scalar.
  std::vector<NodeId> readers;  // Ascending, each once.

  bool operator==(const Parameter&) const = default;
  // Returns the parameter as a tensor that is optimized, which must not be empty.
  OptimizedTensors AsOptimized() const { return {elements, bytes.count() / elements, 1}; }
};

}  // namespace ckplan
