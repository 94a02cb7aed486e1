// Functions of one number other than activations.

#include "lib/problem/ops/families.h"
#include "lib/problem/ops/judge.h"

namespace ckplan {

namespace {

// Functions from floats to floats.
Result<Done> JudgeFunction(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  return RequireFloat(spec, spec.input(0), "its input");
}

// Functions from numbers of any type to the same type.
Result<Done> JudgeNumber(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  return RequireNumber(spec, spec.input(0), "its input");
}

// Functions from floats to booleans.
Result<Done> JudgeFloatTest(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireSameDims(spec));
  CKPLAN_RETURN_IF_ERROR(RequireFloat(spec, spec.input(0), "its input"));
  return RequireType(spec, spec.output(0), "its output", ElementType::kBool);
}

Result<Done> JudgeNot(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  return RequireType(spec, spec.input(0), "its input", ElementType::kBool);
}

}  // namespace

std::span<const FamilyRow> UnaryMathFamily() {
  static constexpr FamilyRow kRows[] = {
      {"Exp", JudgeFunction},    {"Sqrt", JudgeFunction},  {"Reciprocal", JudgeFunction},
      {"Tan", JudgeFunction},    {"Log", JudgeFunction},   {"Abs", JudgeNumber},
      {"Erf", JudgeFunction},    {"Sin", JudgeFunction},   {"Cos", JudgeFunction},
      {"Asin", JudgeFunction},   {"Acos", JudgeFunction},  {"Atan", JudgeFunction},
      {"Sinh", JudgeFunction},   {"Cosh", JudgeFunction},  {"Asinh", JudgeFunction},
      {"Acosh", JudgeFunction},  {"Atanh", JudgeFunction}, {"Neg", JudgeNumber},
      {"Sign", JudgeNumber},     {"Floor", JudgeFunction}, {"Ceil", JudgeFunction},
      {"Round", JudgeFunction},  {"Not", JudgeNot},        {"IsNaN", JudgeFloatTest},
      {"IsInf", JudgeFloatTest},
  };
  return kRows;
}

}  // namespace ckplan
