// A test case for an operator: its attributes, and the shapes and contents of its operands, as one
// row of text.
//
//   {"Gemm", "f2x3 f3x4 f4 -> f2x4", "alpha=0.5 transB=0"}
//   {"Clip@6", "f2x3 -> f2x3", "min=-1.0 max=1.0"}
//   {"Gather", "f5x3 i4@[0,2,2,4] -> f4x3", "axis=0"}
//   {"ReduceSum", "f2x3 i1=[1] -> f2x1"}
//
// Operator    the name, and the opset after @ (default 20)
// Operand     type, dimensions, role, contents, without spaces; _ for an absent operand
//   type      f float32, i int64, n int32, b bool
//   dims      2x3; s for a scalar
//   role      *  constant during the step: it has no gradient, but backward may read it
//             ~  depends on the batch, but its gradient is not requested
//             !  a trained parameter: constant during the step, and its gradient is requested
//             (none) depends on the batch; a float's gradient is requested, if there is one
//   contents  (0.5..2) random in this range; @[1,2] these values; =[1,2] these values, constant
//             and known to Prepare. By default (-2..2); integers 0 or 1.
// Attributes  NAME=VALUE with an integer, a real number (with a point or an exponent), a 'string',
//             a list [1,2] or [1.0,2.0], or a tensor {1,2} or {1.0}
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/rng.h"
#include "lib/executor/testing/tensor.h"
#include "lib/problem/ops/autograd.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan::reference {

struct CaseRow {
  std::string_view type;
  std::string_view operands;
  std::string_view attributes;
  double tolerance = 1e-5;  // The largest |difference| / max(1, |value|) that passes.
};

// How an input is filled.
struct Contents {
  double low = 0, high = 0;
  std::vector<double> values;  // If not empty, used instead of the range.
  bool needs_gradient = false;
  bool is_constant = false;
};

struct OpCase {
  std::string text;  // The row's text.
  OpSpec spec;       // SetGradientRoles sets the members about gradients.
  std::vector<Contents> contents;
  double tolerance = 0;
};

// Fails the program on a malformed row.
OpCase ParseCase(const CaseRow& row);

// Generates the contents of a case's operands.

// Returns zeros of the operand's type and dimensions, or an absent tensor for an absent operand.
Tensor EmptyTensor(const Operand& operand);

// Returns one tensor per input. All floats of a case are different points of one grid, in random
// order, and none is 0, so that a small step never changes the order of two of them.
std::vector<Tensor> FillInputs(const OpCase& op_case, uint64_t seed);

// Returns contents in [-1, 1] for an output's gradient, or an absent tensor unless the operand is a
// float.
Tensor RandomGradient(const Operand& operand, Rng& rng);

// Sets a spec's members about gradients, as in a planned step: which gradients are requested, what
// backward may read, and what forward saves for backward.

// Sets the spec's has_gradient, is_read_by_backward and statistic_bytes, using the table in
// lib/problem/ops under `autograd`. For each input, `needs_gradient` says whether its gradient is
// requested, and `is_constant` whether it is constant during the step. For each output, `arrives`
// says whether its gradient arrives.
void SetGradientRoles(OpSpec& spec, const std::vector<bool>& needs_gradient,
                      const std::vector<bool>& is_constant, const std::vector<bool>& arrives,
                      Autograd autograd = Autograd::kMinimal);

// Returns the spec of a case. The operands' roles decide which gradients are requested; the
// gradients of all float outputs arrive.
OpSpec SpecOfCase(const CaseRow& row, Autograd autograd = Autograd::kMinimal);

// All operators' references, and the cases that check the kernels. Each family has one file in this
// folder.
#define CKPLAN_FAMILY(Name)                        \
  std::span<const FunctionRow> Name##References(); \
  std::span<const CaseRow> Name##Cases();
#include "lib/problem/ops/families.def"
#undef CKPLAN_FAMILY

// Returns null for an operator without a reference.
Function FindFunction(std::string_view type);
// Counts this operator's cases in all families.
int CountCases(std::string_view type);

}  // namespace ckplan::reference
