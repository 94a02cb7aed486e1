// The constants of a model one by one. Their sizes and readers decide how they are divided among
// devices, and which of them each stage of a pipeline holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/units.h"
#include "lib/problem/graph/optimized_tensors.h"

namespace ckplan {

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
