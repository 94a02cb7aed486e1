#include "lib/problem/ops/elementwise.h"

#include <fmt/format.h>

#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_checks.h"

namespace ckplan {

namespace {

// Returns true if backward can compute the gradient from the output alone.
bool OutputDeterminesGradient(const OpSpec& spec) {
  const double alpha = spec.Float("alpha", 1);
  if (spec.type == "LeakyRelu" || spec.type == "Elu") return alpha >= 0;
  if (spec.type == "Celu") return alpha > 0;
  if (spec.type == "Selu") return alpha >= 0 && spec.Float("gamma", 1) > 0;
  return true;
}

Result<Done> ValidateRelu(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  return RequireNumber(spec, spec.input(0), "its input");
}

Result<Done> ValidateGelu(const OpSpec& spec) {
  const std::string approximation = spec.String("approximate", "none");
  if (approximation != "none" && approximation != "tanh") {
    return InvalidOp(spec, fmt::format("attribute approximate is \"{}\" instead of none or tanh",
                                       approximation));
  }
  return ValidateActivation(spec);
}

Result<Done> ValidateSoftplus(const OpSpec& spec) {
  if (spec.Float(kFactorAttribute, 1) == 0) return InvalidOp(spec, "its beta is 0");
  return ValidateActivation(spec);
}

}  // namespace

Result<Done> ValidateActivation(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  CKPLAN_RETURN_IF_ERROR(RequireFloat(spec, spec.input(0), "its input"));
  if (spec.input(0).has_gradient && !OutputDeterminesGradient(spec)) {
    return UnsupportedOp(
        spec, "with these attributes, backward cannot compute the gradient from its output");
  }
  return Done{};
}

std::span<const FamilyRow> ActivationFamily() {
  static constexpr FamilyRow kRows[] = {
      {"Relu", ValidateRelu},
      {"LeakyRelu", ValidateActivation, "gradient only for alpha >= 0"},
      {"Sigmoid", ValidateActivation},
      {"Tanh", ValidateActivation},
      {"Elu", ValidateActivation, "gradient only for alpha >= 0"},
      {"Selu", ValidateActivation, "gradient only for alpha >= 0 and gamma > 0"},
      {"Celu", ValidateActivation, "gradient only for alpha > 0"},
      {"Softplus", ValidateSoftplus},
      {"Softsign", ValidateActivation},
      {"Gelu", ValidateGelu},
      {"Swish", ValidateActivation},
      {"Mish", ValidateActivation},
      {"HardSigmoid", ValidateActivation},
      {"HardSwish", ValidateActivation},
      {"ThresholdedRelu", ValidateActivation},
      {"Shrink", ValidateActivation},
  };
  return kRows;
}

namespace {

Result<Done> ValidateArithmetic(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireBroadcast(spec, 2));
  CKPLAN_RETURN_IF_ERROR(RequireNumber(spec, spec.input(0), "its first input"));
  CKPLAN_RETURN_IF_ERROR(RequireType(spec, spec.input(1), "its second input", spec.input(0).type));
  return RequireType(spec, spec.output(0), "its output", spec.input(0).type);
}

Result<Done> ValidatePow(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireBroadcast(spec, 2));
  if (KnownExponent(spec).has_value()) {
    return RequireType(spec, spec.output(0), "its output", spec.input(0).type);
  }
  if (!AreAlike(spec.input(0).type, spec.input(1).type)) {
    return UnsupportedOp(spec, "its exponent has another element type and is not a known scalar");
  }
  return ValidateArithmetic(spec);
}

Result<Done> ValidatePRelu(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(ValidateArithmetic(spec));
  return RequireFloat(spec, spec.input(0), "its input");
}

Result<Done> ValidateMod(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(ValidateArithmetic(spec));
  if (spec.Int("fmod", 0) == 0 && IsFloat(spec.input(0).type)) {
    // ONNX's reference implementation supports this; our kernels do not.
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
      {"Add", ValidateArithmetic},
      {"Sub", ValidateArithmetic},
      {"Mul", ValidateArithmetic},
      {"Div", ValidateArithmetic},
      {"Mod", ValidateMod},
      {"Pow", ValidatePow, "an exponent of another type must be a known scalar"},
      {"PRelu", ValidatePRelu},
  };
  return kRows;
}

// ---- Clip and casts ----

namespace {

// Checks one of Clip's limits, input 1 or 2, which may be absent.
Result<Done> ValidateLimit(const OpSpec& spec, size_t position) {
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

Result<Done> ValidateClip(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  CKPLAN_RETURN_IF_ERROR(RequireNumber(spec, spec.input(0), "its input"));
  CKPLAN_RETURN_IF_ERROR(ValidateLimit(spec, 1));
  CKPLAN_RETURN_IF_ERROR(ValidateLimit(spec, 2));
  if (!IsFloat(spec.input(0).type) && (spec.Has("min") || spec.Has("max"))) {
    return InvalidOp(spec, "its limits are float attributes, but its input is not a float");
  }
  return Done{};
}

}  // namespace

std::span<const FamilyRow> ClipCastFamily() {
  static constexpr FamilyRow kRows[] = {
      {"Clip", ValidateClip, "gradient only where the limits are constant"},
      {"Cast", RequireSameDims},
      {"CastLike", RequireSameDims},
  };
  return kRows;
}

// ---- Comparisons, boolean and bitwise logic, and Where ----

namespace {

Result<Done> ValidateTest(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireBroadcast(spec, 2));
  CKPLAN_RETURN_IF_ERROR(RequireType(spec, spec.input(1), "its second input", spec.input(0).type));
  return RequireType(spec, spec.output(0), "its output", ElementType::kBool);
}

Result<Done> ValidateBits(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireBroadcast(spec, 2));
  CKPLAN_RETURN_IF_ERROR(RequireIndices(spec, spec.input(0), "its first input"));
  CKPLAN_RETURN_IF_ERROR(RequireType(spec, spec.input(1), "its second input", spec.input(0).type));
  return RequireType(spec, spec.output(0), "its output", spec.input(0).type);
}

Result<Done> ValidateWhere(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireBroadcast(spec, 3));
  CKPLAN_RETURN_IF_ERROR(RequireType(spec, spec.input(0), "its condition", ElementType::kBool));
  CKPLAN_RETURN_IF_ERROR(RequireType(spec, spec.input(2), "its second choice", spec.input(1).type));
  return RequireType(spec, spec.output(0), "its output", spec.input(1).type);
}

}  // namespace

std::span<const FamilyRow> LogicFamily() {
  static constexpr FamilyRow kRows[] = {
      {"Equal", ValidateTest},
      {"Less", ValidateTest},
      {"LessOrEqual", ValidateTest},
      {"Greater", ValidateTest},
      {"GreaterOrEqual", ValidateTest},
      {"And", ValidateTest},
      {"Or", ValidateTest},
      {"Xor", ValidateTest},
      {"BitwiseAnd", ValidateBits},
      {"BitwiseOr", ValidateBits},
      {"BitwiseXor", ValidateBits},
      {"Where", ValidateWhere},
  };
  return kRows;
}

// ---- Sums, means, minima and maxima of any number of inputs ----

namespace {

Result<Done> ValidateSameType(const OpSpec& spec) {
  if (spec.inputs.empty()) return InvalidOp(spec, "it has no inputs");
  CKPLAN_RETURN_IF_ERROR(RequireBroadcast(spec, spec.inputs.size()));
  CKPLAN_RETURN_IF_ERROR(RequireNumber(spec, spec.input(0), "its first input"));
  for (size_t i = 1; i < spec.inputs.size(); ++i) {
    CKPLAN_RETURN_IF_ERROR(
        RequireType(spec, spec.input(i), fmt::format("input {}", i), spec.input(0).type));
  }
  return RequireType(spec, spec.output(0), "its output", spec.input(0).type);
}

Result<Done> ValidateFloats(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(ValidateSameType(spec));
  return RequireFloat(spec, spec.input(0), "its first input");
}

}  // namespace

std::span<const FamilyRow> NaryFamily() {
  static constexpr FamilyRow kRows[] = {
      {"Sum", ValidateFloats},
      {"Mean", ValidateFloats},
      {"Max", ValidateSameType},
      {"Min", ValidateSameType},
  };
  return kRows;
}

// ---- Functions of one number, except activations ----

namespace {

// From floats to floats.
Result<Done> ValidateFunction(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  return RequireFloat(spec, spec.input(0), "its input");
}

// From numbers of any type to the same type.
Result<Done> ValidateNumber(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  return RequireNumber(spec, spec.input(0), "its input");
}

// From floats to booleans.
Result<Done> ValidateFloatTest(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireSameDims(spec));
  CKPLAN_RETURN_IF_ERROR(RequireFloat(spec, spec.input(0), "its input"));
  return RequireType(spec, spec.output(0), "its output", ElementType::kBool);
}

Result<Done> ValidateNot(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  return RequireType(spec, spec.input(0), "its input", ElementType::kBool);
}

}  // namespace

std::span<const FamilyRow> UnaryMathFamily() {
  static constexpr FamilyRow kRows[] = {
      {"Exp", ValidateFunction},    {"Sqrt", ValidateFunction},   {"Reciprocal", ValidateFunction},
      {"Rsqrt", ValidateFunction},  {"Tan", ValidateFunction},    {"Log", ValidateFunction},
      {"Abs", ValidateNumber},      {"Erf", ValidateFunction},    {"Sin", ValidateFunction},
      {"Cos", ValidateFunction},    {"Asin", ValidateFunction},   {"Acos", ValidateFunction},
      {"Atan", ValidateFunction},   {"Sinh", ValidateFunction},   {"Cosh", ValidateFunction},
      {"Asinh", ValidateFunction},  {"Acosh", ValidateFunction},  {"Atanh", ValidateFunction},
      {"Neg", ValidateNumber},      {"Sign", ValidateNumber},     {"Floor", ValidateFunction},
      {"Ceil", ValidateFunction},   {"Round", ValidateFunction},  {"Not", ValidateNot},
      {"IsNaN", ValidateFloatTest}, {"IsInf", ValidateFloatTest},
  };
  return kRows;
}

}  // namespace ckplan
