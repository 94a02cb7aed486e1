#include "lib/problem/ops/layer_norm.h"

#include <fmt/format.h>

#include "lib/problem/ops/axes.h"
#include "lib/problem/ops/judge.h"
#include "lib/problem/ops/sizes.h"

namespace ckplan {

namespace {

Dims WithoutLeadingOnes(Dims dims) {
  while (!dims.empty() && dims.front() == 1) dims.erase(dims.begin());
  return dims;
}

// Scales and biases have the shape of a row. ONNX broadcasts them; kernels do not.
Result<Done> CheckParameter(const OpSpec& spec, const Operand& operand, std::string_view name,
                            const Dims& row) {
  const Dims own = WithoutLeadingOnes(operand.dims);
  if (!operand.is_present || own == WithoutLeadingOnes(row)) return Done{};
  bool is_broadcast = own.size() <= row.size();
  for (size_t i = 0; is_broadcast && i < own.size(); ++i) {
    const int64_t dim = row[row.size() - own.size() + i];
    is_broadcast = own[i] == 1 || own[i] == dim;
  }
  if (!is_broadcast) return RequireDims(spec, operand, name, row);
  return UnsupportedOp(spec, fmt::format("{} is {} and is broadcast to {}", name,
                                         TextOf(operand.dims), TextOf(row)));
}

Result<Done> CheckOutputs(const OpSpec& spec, const LayerNormShape& shape) {
  for (size_t i = 1; i < spec.outputs.size(); ++i) {
    const Operand& moments = spec.outputs[i];
    if (!moments.is_present) continue;
    if (moments.has_gradient) return UnsupportedOp(spec, "its moments get a gradient");
    CKPLAN_RETURN_IF_ERROR(RequireFloat(spec, moments, "an output of moments"));
    CKPLAN_RETURN_IF_ERROR(RequireElements(spec, moments, "an output of moments", shape.rows));
  }
  return RequireKeptScale(spec);
}

}  // namespace

Result<LayerNormShape> ReadLayerNormShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireFloatTensors(spec, 2));
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  const Dims& x = spec.input(0).dims;
  CKPLAN_ASSIGN_OR_RETURN(const size_t axis, NormalAxis(spec, spec.Int("axis", -1), x.size()));
  const Dims row(x.begin() + static_cast<std::ptrdiff_t>(axis), x.end());
  LayerNormShape shape;
  shape.has_mean = spec.type == "LayerNormalization";
  shape.has_bias = spec.input(2).is_present;
  shape.size = Product(row);
  shape.rows = spec.input(0).elements() / shape.size;
  shape.epsilon = static_cast<float>(spec.Float("epsilon", 1e-5));
  CKPLAN_RETURN_IF_ERROR(CheckParameter(spec, spec.input(1), "its scale", row));
  CKPLAN_RETURN_IF_ERROR(CheckParameter(spec, spec.input(2), "its bias", row));
  CKPLAN_RETURN_IF_ERROR(CheckOutputs(spec, shape));
  CKPLAN_RETURN_IF_ERROR(
      RequireStatistic(spec, {shape.rows, (shape.has_mean ? 2 : 1) * kFloatBytes}));
  return shape;
}

std::span<const FamilyRow> LayerNormFamily() {
  static constexpr FamilyRow kRows[] = {
      {"LayerNormalization", JudgeBy<ReadLayerNormShape>, "scale and bias of the normalised shape"},
      {"RMSNormalization", JudgeBy<ReadLayerNormShape>, "scale of the normalised shape"},
  };
  return kRows;
}

}  // namespace ckplan
