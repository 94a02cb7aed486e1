// Calls code for the C++ type of an instruction's operands.
#pragma once

#include <cstdint>

#include "lib/base/check.h"
#include "lib/executor/cuda/ptx/program.h"

namespace ckplan::ptx {

template <typename Body>
void WithInteger(Type type, const Body& body) {
  switch (type) {
    case Type::kPred:
    case Type::kU8:
      return body(uint8_t{});
    case Type::kU16:
      return body(uint16_t{});
    case Type::kU32:
      return body(uint32_t{});
    case Type::kU64:
      return body(uint64_t{});
    case Type::kS8:
      return body(int8_t{});
    case Type::kS16:
      return body(int16_t{});
    case Type::kS32:
      return body(int32_t{});
    case Type::kS64:
      return body(int64_t{});
    default:
      CKPLAN_CHECK(false, "the decoder refuses integers of other types");
  }
}

template <typename Body>
void WithFloat(Type type, const Body& body) {
  if (type == Type::kF32) return body(float{});
  body(double{});
}

template <typename Body>
void WithType(Type type, const Body& body) {
  if (IsFloat(type)) return WithFloat(type, body);
  WithInteger(type, body);
}

}  // namespace ckplan::ptx
