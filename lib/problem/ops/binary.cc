#include "lib/problem/ops/binary.h"

#include "lib/problem/ops/judge.h"

namespace ckplan {

namespace {

Result<Done> JudgeArithmetic(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireBroadcast(spec, 2));
  CKPLAN_RETURN_IF_ERROR(RequireNumber(spec, spec.input(0), "its first input"));
  CKPLAN_RETURN_IF_ERROR(RequireType(spec, spec.input(1), "its second input", spec.input(0).type));
  return RequireType(spec, spec.output(0), "its output", spec.input(0).type);
}

Result<Done> JudgePow(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireBroadcast(spec, 2));
  if (KnownExponent(spec).has_value()) {
    return RequireType(spec, spec.output(0), "its output", spec.input(0).type);
  }
  if (!AreAlike(spec.input(0).type, spec.input(1).type)) {
    return UnsupportedOp(spec, "its exponent is of another element type and no known scalar");
  }
  return JudgeArithmetic(spec);
}

Result<Done> JudgePRelu(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(JudgeArithmetic(spec));
  return RequireFloat(spec, spec.input(0), "its input");
}

Result<Done> JudgeMod(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(JudgeArithmetic(spec));
  if (spec.Int("fmod", 0) == 0 && IsFloat(spec.input(0).type)) {
    // The reference of ONNX computes it; no kernel here does.
    return UnsupportedOp(spec, "attribute fmod is 0 and its inputs are floats");
  }
  return Done{};
}

}  // namespace

std::optional<double> KnownExponent(const OpSpec& spec) {
  const Operand& exponent = spec.input(1);
  if (!IsFloat(spec.input(0).type) || exponent.has_gradient) return std::nullopt;
  if (!exponent.known.has_value() || exponent.elements() != 1) return std::nullopt;
  const KnownValue& known = *exponent.known;
  if (IsFloat(exponent.type) && known.reals.size() == 1) return known.reals[0];
  if (!IsFloat(exponent.type) && known.ints.size() == 1) return static_cast<double>(known.ints[0]);
  return std::nullopt;
}

std::span<const FamilyRow> BinaryFamily() {
  static constexpr FamilyRow kRows[] = {
      {"Add", JudgeArithmetic},
      {"Sub", JudgeArithmetic},
      {"Mul", JudgeArithmetic},
      {"Div", JudgeArithmetic},
      {"Mod", JudgeMod},
      {"Pow", JudgePow, "an exponent of another type only if it is a known scalar"},
      {"PRelu", JudgePRelu},
  };
  return kRows;
}

}  // namespace ckplan
