// Values that the original program names but the graph does not hold. Users still ask for them.
#pragma once

#include <cstdint>
#include <string>

#include "lib/base/units.h"

namespace ckplan {

struct AbsentValue {
  enum class Kind : uint8_t {
    kView,      // The result of a Reshape, say: it shares the memory of `tensor`.
    kConstant,  // Exists before the step begins: a parameter, or computed from parameters alone.
    kUnread,    // No operation reads it, so it is not made.
  };
  std::string name;
  Kind kind = Kind::kConstant;
  TensorId tensor;  // None unless the value is a view.

  bool operator==(const AbsentValue&) const = default;
};

}  // namespace ckplan
