// The operators that can be run, by family: of each family one file pair in this folder, which
// reads the shape of its operators and judges it, and one list of its operators.
//
//   rotary.h    struct RotaryShape, and ReadRotaryShape(spec): what kernels are made from
//   rotary.cc   RotaryFamily(): {"RotaryEmbedding", judge, limits}
//
// Reading a shape judges it: ranks and sizes of operands against the attributes and each other,
// strides, dilations and groups, lengths of biases, gates and states, sizes within what kernels and
// libraries count in. A spec that passed is safe to run on any backend: no kernel needs to look
// again.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

struct FamilyRow {
  std::string_view type;
  // kInvalidInput: operands and attributes contradict each other. kUnsupported: no backend runs it.
  Result<Done> (*judge)(const OpSpec& spec) = nullptr;
  std::string_view limits = {};  // What of the operator no backend supports; empty: nothing.
};

// The operators of each family, by families.def.
#define CKPLAN_FAMILY(Name) std::span<const FamilyRow> Name##Family();
#include "lib/ops/families.def"
#undef CKPLAN_FAMILY

// All families, in alphabetical order of their operators.
std::span<const FamilyRow> AllFamilyRows();
// Null for an operator that no backend can run.
const FamilyRow* FindFamilyRow(std::string_view type);

// Whether the operator is safe to run on any backend; see FamilyRow::judge. kUnsupported for an
// operator of no family.
Result<Done> JudgeOp(const OpSpec& spec);

// What is not supported by any backend, and what one backend adds to it: "a; b".
std::string JoinLimits(std::string_view common, std::string_view own);

// A judge that reads a shape and drops it: JudgeBy<ReadConvShape>.
template <auto kRead>
Result<Done> JudgeBy(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(kRead(spec));
  return Done{};
}

}  // namespace ckplan
