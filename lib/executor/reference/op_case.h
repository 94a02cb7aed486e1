// A case to check an operator with: its attributes, and the shapes and contents of its operands,
// written as one row of text.
//
//   {"Gemm", "f2x3 f3x4 f4 -> f2x4", "alpha=0.5 transB=0"}
//   {"Clip@6", "f2x3 -> f2x3", "min=-1.0 max=1.0"}
//   {"Gather", "f5x3 i4@[0,2,2,4] -> f4x3", "axis=0"}
//   {"ReduceSum", "f2x3 i1=[1] -> f2x1"}
//
// Operator    the name, and the opset after @ (20 if none is given)
// Operand     type, dimensions, role, contents, without spaces; _ for an operand that is left out
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
#include "lib/executor/reference/tensor.h"
#include "lib/problem/ops/autograd.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan::reference {

struct CaseRow {
  std::string_view type;
  std::string_view operands;
  std::string_view attributes;
  double tolerance = 1e-5;  // The largest |difference| / max(1, |value|) that passes.
};

// Describes how an input is filled.
struct Contents {
  double low = 0, high = 0;
  std::vector<double> values;  // Used instead of the range if not empty.
  bool needs_gradient = false;
  bool is_constant = false;
};

struct OpCase {
  std::string text;  // The row.
  OpSpec spec;       // SetGradientRoles sets the members that concern gradients.
  std::vector<Contents> contents;
  double tolerance = 0;
};

// Fails the program on a row that does not follow the grammar.
OpCase ParseCase(const CaseRow& row);

// Generates the contents of a case's operands.

// Returns zeros of the operand's type and dimensions, or an absent tensor for an absent operand.
Tensor EmptyTensor(const Operand& operand);

// Returns one tensor for each input. All floats of a case are different points of one grid, in
// random order, and none is 0, so that a small step does not change the result of comparing two of
// them.
std::vector<Tensor> FillInputs(const OpCase& op_case, uint64_t seed);

// Returns contents in [-1, 1] for the gradient of an output, or an absent tensor for an operand
// that is not a float.
Tensor RandomGradient(const Operand& operand, Rng& rng);

// Sets the members of an operator's spec that concern gradients, as in a planned step: which are
// requested, what backward may read, and what forward saves for backward.

// Sets has_gradient, is_read_by_backward and statistic_bytes of the spec, by the table of
// lib/problem/ops under `autograd`. `wants` and `is_constant` say for each input whether its
// gradient is requested and whether it is constant during the step. `arrives` says for each output
// whether its gradient arrives.
void SetGradientRoles(OpSpec& spec, const std::vector<bool>& wants,
                      const std::vector<bool>& is_constant, const std::vector<bool>& arrives,
                      Autograd autograd = Autograd::kMinimal);

// Returns the spec of a case. The roles of the operands decide which gradients are requested; the
// gradients of all float outputs arrive.
OpSpec SpecOfCase(const CaseRow& row, Autograd autograd = Autograd::kMinimal);

// The references of all operators, and the cases with which kernels are checked. Each family has
// one file in this folder.
#define CKPLAN_FAMILY(Name)                        \
  std::span<const FunctionRow> Name##References(); \
  std::span<const CaseRow> Name##Cases();
#include "lib/problem/ops/families.def"
#undef CKPLAN_FAMILY

// Returns null for an operator without a reference.
Function FindFunction(std::string_view type);
// Returns the number of this operator's cases, in all families.
int CountCases(std::string_view type);

}  // namespace ckplan::reference
