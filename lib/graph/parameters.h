// The constants of a model one by one, for what depends on their sizes and on who reads them: how
// they are divided among devices, and which of them a stage of a pipeline has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/units.h"

namespace ckplan {

struct Parameter {
  enum class Kind : uint8_t {
    kTrained,  // It has a gradient, and what the optimizer keeps for it.
    kFrozen,   // Not trained, but a parameter of the original program.
    kBuffer,   // State that is no parameter: running statistics, masks, quantized weights.
  };
  std::string name;
  Kind kind = Kind::kTrained;
  Bytes bytes;
  int64_t elements = 0;
  int64_t rows = 1;             // Of its first dimension; 1 of a scalar.
  std::vector<NodeId> readers;  // Ascending, each once.

  bool operator==(const Parameter&) const = default;
};

}  // namespace ckplan
