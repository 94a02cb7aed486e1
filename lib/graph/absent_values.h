// Values that the original program names and the graph has not: people ask for them all the same.
#pragma once

#include <cstdint>
#include <string>

#include "lib/base/units.h"

namespace ckplan {

struct AbsentValue {
  enum class Kind : uint8_t {
    kView,      // Has the memory of `tensor`: the result of a Reshape.
    kConstant,  // There before the step begins: a parameter, or computed from parameters alone.
    kUnread,    // Nothing reads it, so it is not made.
  };
  std::string name;
  Kind kind = Kind::kConstant;
  TensorId tensor;  // Of a view, else none.

  bool operator==(const AbsentValue&) const = default;
};

}  // namespace ckplan
