// What each operator computes, in double precision and in the plainest way. Tests compare
// the backends' kernels with it. Shares no code with any of them, and is linked into tests alone.
#pragma once

#include <span>
#include <string_view>

#include "lib/ops/op_spec.h"
#include "lib/reference/tensor.h"

namespace ckplan::reference {

// Fills the values of the outputs that are present; their types, dimensions and number of values
// (zeros) are set. Shapes fit each other: the cases see to that.
using Function = void (*)(const OpSpec& spec, std::span<const Tensor> inputs,
                          std::span<Tensor> outputs);

struct FunctionRow {
  std::string_view type;
  Function function = nullptr;
};

}  // namespace ckplan::reference
