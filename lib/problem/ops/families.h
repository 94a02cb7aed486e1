// The operators that can be run, grouped into families. Each family has one file pair in this
// folder, which lists its operators and reads and checks their shapes.
//
//   attention.h    struct RotaryShape, and ReadRotaryShape(spec): what kernels are made from
//   attention.cc   RotaryFamily(): {"RotaryEmbedding", judge, limits}
//
// Reading a shape checks it: ranks and sizes of operands against the attributes and each other;
// strides, dilations and groups; lengths of biases, gates and states; and that sizes do not exceed
// the integers in which kernels and libraries count. A spec that passed is safe to run on any
// backend: kernels need not check again.
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
  Result<Done> (*judge)(const OpSpec& spec) = nullptr;
  // The part of the operator that no backend supports; may be empty.
  std::string_view limits = {};
  // kInvalidInput: the attributes contradict themselves or the ranks of operands, whatever the
  // output is. Operands of unknown shape are absent from the spec. May be null.
  Result<Done> (*judge_attributes)(const OpSpec& spec) = nullptr;
};

// One function for each family of families.def, which returns the family's operators.
#define CKPLAN_FAMILY(Name) std::span<const FamilyRow> Name##Family();
#include "lib/problem/ops/families.def"
#undef CKPLAN_FAMILY

// All families, in alphabetical order of their operators.
std::span<const FamilyRow> AllFamilyRows();
// Returns null for an operator that no backend can run.
const FamilyRow* FindFamilyRow(std::string_view type);

// Returns success if the operator is safe to run on any backend; see FamilyRow::judge.
// kUnsupported: the operator belongs to no family.
Result<Done> ValidateOp(const OpSpec& spec);

// Judges what is known before the shape of the output is inferred: ValidateCommonAttributes
// (families.cc) for every operator, then FamilyRow::judge_attributes of those in families.
Result<Done> ValidateAttributes(const OpSpec& spec);

// Joins the limits that all backends have with the further limits of one backend: "a; b".
std::string JoinLimits(std::string_view common, std::string_view own);

// A judge that reads the shape only to check it: ValidateBy<ReadConvShape>.
template <auto kRead>
Result<Done> ValidateBy(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(kRead(spec));
  return Done{};
}

}  // namespace ckplan
