// Comparisons, boolean and bitwise logic, and Where, which selects by a condition.

#include "lib/problem/ops/families.h"
#include "lib/problem/ops/judge.h"

namespace ckplan {

namespace {

Result<Done> JudgeTest(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireBroadcast(spec, 2));
  CKPLAN_RETURN_IF_ERROR(RequireType(spec, spec.input(1), "its second input", spec.input(0).type));
  return RequireType(spec, spec.output(0), "its output", ElementType::kBool);
}

Result<Done> JudgeBits(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireBroadcast(spec, 2));
  CKPLAN_RETURN_IF_ERROR(RequireIndices(spec, spec.input(0), "its first input"));
  CKPLAN_RETURN_IF_ERROR(RequireType(spec, spec.input(1), "its second input", spec.input(0).type));
  return RequireType(spec, spec.output(0), "its output", spec.input(0).type);
}

Result<Done> JudgeWhere(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireBroadcast(spec, 3));
  CKPLAN_RETURN_IF_ERROR(RequireType(spec, spec.input(0), "its condition", ElementType::kBool));
  CKPLAN_RETURN_IF_ERROR(RequireType(spec, spec.input(2), "its second choice", spec.input(1).type));
  return RequireType(spec, spec.output(0), "its output", spec.input(1).type);
}

}  // namespace

std::span<const FamilyRow> LogicFamily() {
  static constexpr FamilyRow kRows[] = {
      {"Equal", JudgeTest},
      {"Less", JudgeTest},
      {"LessOrEqual", JudgeTest},
      {"Greater", JudgeTest},
      {"GreaterOrEqual", JudgeTest},
      {"And", JudgeTest},
      {"Or", JudgeTest},
      {"Xor", JudgeTest},
      {"BitwiseAnd", JudgeBits},
      {"BitwiseOr", JudgeBits},
      {"BitwiseXor", JudgeBits},
      {"Where", JudgeWhere},
  };
  return kRows;
}

}  // namespace ckplan
