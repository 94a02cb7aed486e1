#include "lib/problem/ops/elementwise.h"

#include <fmt/format.h>

#include "lib/problem/ops/families.h"
#include "lib/problem/ops/judge.h"

namespace ckplan {

namespace {

// Returns whether backward can compute the gradient from the output alone.
bool OutputHasSlope(const OpSpec& spec) {
  const double alpha = spec.Float("alpha", 1);
  if (spec.type == "LeakyRelu" || spec.type == "Elu") return alpha >= 0;
  if (spec.type == "Celu") return alpha > 0;
  if (spec.type == "Selu") return alpha >= 0 && spec.Float("gamma", 1) > 0;
  return true;
}

Result<Done> JudgeRelu(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  return RequireNumber(spec, spec.input(0), "its input");
}

Result<Done> JudgeGelu(const OpSpec& spec) {
  const std::string approximation = spec.String("approximate", "none");
  if (approximation != "none" && approximation != "tanh") {
    return InvalidOp(spec, fmt::format("attribute approximate is \"{}\" instead of none or tanh",
                                       approximation));
  }
  return JudgeActivation(spec);
}

Result<Done> JudgeSoftplus(const OpSpec& spec) {
  if (spec.Float(kFactorAttribute, 1) == 0) return InvalidOp(spec, "its beta is 0");
  return JudgeActivation(spec);
}

}  // namespace

Result<Done> JudgeActivation(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  CKPLAN_RETURN_IF_ERROR(RequireFloat(spec, spec.input(0), "its input"));
  if (spec.input(0).has_gradient && !OutputHasSlope(spec)) {
    return UnsupportedOp(
        spec, "with these attributes its output, which backward reads, does not give the gradient");
  }
  return Done{};
}

std::span<const FamilyRow> ActivationFamily() {
  static constexpr FamilyRow kRows[] = {
      {"Relu", JudgeRelu},
      {"LeakyRelu", JudgeActivation, "gradient only for alpha >= 0"},
      {"Sigmoid", JudgeActivation},
      {"Tanh", JudgeActivation},
      {"Elu", JudgeActivation, "gradient only for alpha >= 0"},
      {"Selu", JudgeActivation, "gradient only for alpha >= 0 and gamma > 0"},
      {"Celu", JudgeActivation, "gradient only for alpha > 0"},
      {"Softplus", JudgeSoftplus},
      {"Softsign", JudgeActivation},
      {"Gelu", JudgeGelu},
      {"Swish", JudgeActivation},
      {"Mish", JudgeActivation},
      {"HardSigmoid", JudgeActivation},
      {"HardSwish", JudgeActivation},
      {"ThresholdedRelu", JudgeActivation},
      {"Shrink", JudgeActivation},
  };
  return kRows;
}

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

// Clip, whose limits may be inputs, and the changes of element type.

namespace {

// Checks one of the limits, input 1 or 2, which may be absent.
Result<Done> JudgeLimit(const OpSpec& spec, size_t position) {
  const Operand& limit = spec.input(position);
  if (!limit.is_present) return Done{};
  const std::string_view name = position == 1 ? "its lower limit" : "its upper limit";
  CKPLAN_RETURN_IF_ERROR(RequireElements(spec, limit, name, 1));
  CKPLAN_RETURN_IF_ERROR(RequireType(spec, limit, name, spec.input(0).type));
  if (spec.input(0).has_gradient && !limit.is_read_by_backward) {
    return UnsupportedOp(spec, "its limits are computed during the step");
  }
  return Done{};
}

Result<Done> JudgeClip(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  CKPLAN_RETURN_IF_ERROR(RequireNumber(spec, spec.input(0), "its input"));
  CKPLAN_RETURN_IF_ERROR(JudgeLimit(spec, 1));
  CKPLAN_RETURN_IF_ERROR(JudgeLimit(spec, 2));
  if (!IsFloat(spec.input(0).type) && (spec.Has("min") || spec.Has("max"))) {
    return InvalidOp(spec, "its limits are attributes, which are floats, and its input is not");
  }
  return Done{};
}

}  // namespace

std::span<const FamilyRow> ClipCastFamily() {
  static constexpr FamilyRow kRows[] = {
      {"Clip", JudgeClip, "gradient only where the limits are constant"},
      {"Cast", RequireSameDims},
      {"CastLike", RequireSameDims},
  };
  return kRows;
}

// Comparisons, boolean and bitwise logic, and Where, which selects by a condition.

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

// Elementwise operators with any number of inputs, all broadcast to the output: sums, means, minima
// and maxima.

namespace {

Result<Done> JudgeExtreme(const OpSpec& spec) {
  if (spec.inputs.empty()) return InvalidOp(spec, "it has no inputs");
  CKPLAN_RETURN_IF_ERROR(RequireBroadcast(spec, spec.inputs.size()));
  CKPLAN_RETURN_IF_ERROR(RequireNumber(spec, spec.input(0), "its first input"));
  for (size_t i = 1; i < spec.inputs.size(); ++i) {
    CKPLAN_RETURN_IF_ERROR(
        RequireType(spec, spec.input(i), fmt::format("input {}", i), spec.input(0).type));
  }
  return RequireType(spec, spec.output(0), "its output", spec.input(0).type);
}

Result<Done> JudgeSum(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(JudgeExtreme(spec));
  return RequireFloat(spec, spec.input(0), "its first input");
}

}  // namespace

std::span<const FamilyRow> NaryFamily() {
  static constexpr FamilyRow kRows[] = {
      {"Sum", JudgeSum},
      {"Mean", JudgeSum},
      {"Max", JudgeExtreme},
      {"Min", JudgeExtreme},
  };
  return kRows;
}

// Functions of one number other than activations.

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
