// What each operator computes, in double precision and in the plainest way: the judge of the
// backends' kernels. Shares no code with any of them, and is linked into tests alone.
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

// Null for an operator without a reference.
Function FindFunction(std::string_view type);

// One list for each family, in a file of its own: reference_FAMILY.cc.
std::span<const FunctionRow> UnaryFunctions();
std::span<const FunctionRow> BinaryFunctions();
std::span<const FunctionRow> ReduceFunctions();
std::span<const FunctionRow> MoveFunctions();
std::span<const FunctionRow> GenerateFunctions();
std::span<const FunctionRow> ResizeFunctions();
std::span<const FunctionRow> GatherFunctions();
std::span<const FunctionRow> RotaryFunctions();
std::span<const FunctionRow> LossFunctions();
std::span<const FunctionRow> ConvFunctions();
std::span<const FunctionRow> NormFunctions();
std::span<const FunctionRow> MatMulFunctions();
std::span<const FunctionRow> RecurrentFunctions();
std::span<const FunctionRow> AttentionFunctions();

}  // namespace ckplan::reference
