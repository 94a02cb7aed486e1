#include "lib/problem/ops/activation.h"

#include <fmt/format.h>

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
  const double factor = spec.Float(kFactorAttribute, 1);
  if (factor == 1) return JudgeActivation(spec);
  return UnsupportedOp(spec, fmt::format("its beta is {}; 1 is supported", factor));
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

}  // namespace ckplan
