// What each operator computes, in double precision and in the plainest way. Tests compare the
// backends' kernels with it. It shares no code with the kernels, and only tests link it.
#pragma once

#include <span>
#include <string_view>

#include "lib/executor/reference/tensor.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan::reference {

// Computes the values of the outputs that are present. Their types and dimensions are already set,
// and their values are zeros. Shapes are consistent; the cases ensure that.
using Function = void (*)(const OpSpec& spec, std::span<const Tensor> inputs,
                          std::span<Tensor> outputs);

struct FunctionRow {
  std::string_view type;
  Function function = nullptr;
};

}  // namespace ckplan::reference
