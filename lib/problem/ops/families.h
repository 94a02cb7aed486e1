// The operators that backends can run, grouped into families. Each family's file in this folder
// lists its operators, and reads and checks their shapes.
//
//   attention.h    struct RotaryShape, and ReadRotaryShape(spec), from which kernels are built
//   attention.cc   RotaryFamily(): {"RotaryEmbedding", validate, limits}
//
// Reading a shape checks it: ranks and sizes of operands against the attributes and each other;
// strides, dilations and groups; lengths of biases, gates and states; and that sizes fit the
// integer types of kernels and libraries. A spec that passes is safe to run on any backend, so
// kernels do not check it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

struct FamilyRow {
  std::string_view type;
  // kInvalidInput: operands and attributes contradict each other. kUnsupported: no backend can run
  // the operator.
  Result<Done> (*validate)(const OpSpec& spec) = nullptr;
  // The limits that all backends share; may be empty.
  std::string_view limits = {};
  // kInvalidInput: the attributes contradict each other or the ranks of the inputs. Operands of
  // unknown shape are absent from the spec. May be null.
  Result<Done> (*validate_attributes)(const OpSpec& spec) = nullptr;
};

// Declares ActivationFamily() and so on, which return each family's operators.
#define CKPLAN_FAMILY(Name) std::span<const FamilyRow> Name##Family();
#include "lib/problem/ops/families.def"
#undef CKPLAN_FAMILY

// The operators of all families, in alphabetical order.
std::span<const FamilyRow> AllFamilyRows();
// Returns null for an operator that no backend can run.
const FamilyRow* FindFamilyRow(std::string_view type);

// Checks that the operator is safe to run on any backend; see FamilyRow::validate. kUnsupported:
// the operator belongs to no family.
Result<Done> ValidateOp(const OpSpec& spec);

// Checks the parts that are known before the output's shape is inferred: ValidateCommonAttributes
// (families.cc) for every operator, then FamilyRow::validate_attributes.
Result<Done> ValidateAttributes(const OpSpec& spec);

// Joins the limits of all backends with those of one backend: "a; b".
std::string JoinLimits(std::string_view common, std::string_view own);

// A FamilyRow::validate that reads the shape only to check it: ValidateBy<ReadConvShape>.
template <auto kRead>
Result<Done> ValidateBy(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(kRead(spec));
  return Done{};
}

}  // namespace ckplan
