// What an elementwise function of one input is to the kernels of all backends: a struct such as
//
//   struct LeakyRelu {
//     static constexpr Reads kReads = Reads::kOutput;   what the slope is computed from
//     explicit LeakyRelu(const OpSpec& spec);           reads the attributes
//     CKPLAN_DEVICE float Value(float x) const;
//     CKPLAN_DEVICE float Slope(float y) const;         dy/dx, from x or y as kReads says
//   };
//
// Backends compute exponentials and related functions in different ways. A struct that needs them
// takes them as the parameter Math, with the static functions Exp, Tanh, Erf, Sigmoid and Softplus.
// All other functions are those of the C library, by the names for floats, which all compilers
// provide. Limits are std::min and std::max: fminf and fmaxf keep host compilers from vectorizing.
#pragma once

#include "lib/executor/scalar/device_function.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan::scalar {

enum class Reads { kNothing, kInput, kOutput };

// An operator without attributes.
template <Reads reads>
struct PlainUnary {
  static constexpr Reads kReads = reads;
  PlainUnary() = default;
  explicit PlainUnary(const OpSpec&) {}
};

}  // namespace ckplan::scalar
