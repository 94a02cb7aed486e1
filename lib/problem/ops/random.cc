#include "lib/problem/ops/random.h"

#include <fmt/format.h>

#include "lib/problem/ops/judge.h"

namespace ckplan {

namespace {

Result<Done> JudgeDrawn(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, 0));
  return RequireFloat(spec, spec.output(0), "its output");
}

Result<Done> JudgeDrawnLike(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireSameDims(spec));
  return JudgeDrawn(spec);
}

Result<Done> JudgeBernoulli(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireSameDims(spec));
  return RequireFloat(spec, spec.input(0), "its input");
}

// Before opset 10 the mask has the type of the input instead of bool.
Result<Done> JudgeMask(const OpSpec& spec) {
  const Operand& mask = spec.output(1);
  CKPLAN_RETURN_IF_ERROR(RequireDims(spec, mask, "its mask", spec.input(0).dims));
  const bool is_right = spec.opset < 10 ? IsFloat(mask.type) : mask.type == ElementType::kBool;
  if (is_right) return Done();
  return InvalidOp(spec, fmt::format("its mask is {}; it must be {} in opset {}", NameOf(mask.type),
                                     spec.opset < 10 ? "of its input's type" : "bool", spec.opset));
}

}  // namespace

Result<double> ReadDropoutRatio(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, 1, 0));
  const Operand& x = spec.input(0);
  CKPLAN_RETURN_IF_ERROR(RequireFloat(spec, x, "its input"));
  if (spec.output(0).is_present) CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  if (spec.output(1).is_present) CKPLAN_RETURN_IF_ERROR(JudgeMask(spec));
  double ratio = spec.Float("ratio", 0.5);
  if (spec.input(1).is_present) {
    const auto& known = spec.input(1).known;
    if (!known.has_value() || known->reals.size() != 1) {
      return UnsupportedOp(spec, "its ratio is computed during the step");
    }
    ratio = known->reals[0];
  }
  if (ratio >= 0 && ratio <= 1) return ratio;
  return InvalidOp(spec, fmt::format("its ratio is {}, which is not between 0 and 1", ratio));
}

std::span<const FamilyRow> RandomFamily() {
  static constexpr FamilyRow kRows[] = {
      {"Dropout", JudgeBy<ReadDropoutRatio>, "the ratio must be known before the step"},
      {"RandomUniform", JudgeDrawn},
      {"RandomUniformLike", JudgeDrawnLike},
      {"RandomNormal", JudgeDrawn},
      {"RandomNormalLike", JudgeDrawnLike},
      {"Bernoulli", JudgeBernoulli},
  };
  return kRows;
}

}  // namespace ckplan
