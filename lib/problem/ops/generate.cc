#include "lib/problem/ops/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <variant>

#include "lib/problem/ops/op_checks.h"

namespace ckplan {

namespace {

Result<Done> ValidateRange(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, 3));
  CKPLAN_RETURN_IF_ERROR(RequireNumber(spec, spec.output(0), "its output"));
  constexpr const char* kNames[] = {"its start", "its limit", "its step"};
  for (size_t i = 0; i < 3; ++i) {
    CKPLAN_RETURN_IF_ERROR(RequireElements(spec, spec.input(i), kNames[i], 1));
    CKPLAN_RETURN_IF_ERROR(RequireType(spec, spec.input(i), kNames[i], spec.output(0).type));
  }
  return Done{};
}

Result<Done> ValidateEyeLike(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireSameDims(spec));
  if (spec.input(0).dims.size() == 2) return Done{};
  return InvalidOp(spec,
                   fmt::format("its input has {} axes instead of 2", spec.input(0).dims.size()));
}

}  // namespace

Result<FillValue> ReadConstantOfShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, 1));
  const auto found = spec.attributes.find("value");
  if (found == spec.attributes.end()) return FillValue{};
  const auto* value = std::get_if<KnownValue>(&found->second);
  if (value == nullptr || value->ints.size() + value->reals.size() != 1) {
    return InvalidOp(spec, "attribute value is not one number");
  }
  if (value->reals.empty() == IsFloat(spec.output(0).type)) {
    return InvalidOp(spec, fmt::format("the type of attribute value differs from its output's, {}",
                                       NameOf(spec.output(0).type)));
  }
  const bool is_bool = spec.output(0).type == ElementType::kBool;
  // In a file, any nonzero byte means true.
  if (is_bool) return FillValue{0, value->ints[0] != 0 ? 1 : 0};
  if (value->reals.empty()) return FillValue{0, value->ints[0]};
  return FillValue{value->reals[0], 0};
}

Result<Dims> ReadShapeOf(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, 1));
  CKPLAN_RETURN_IF_ERROR(RequireType(spec, spec.output(0), "its output", ElementType::kInt64));
  const Dims& dims = spec.input(0).dims;
  Dims written{spec.input(0).elements()};
  if (spec.type == "Shape") {
    const auto rank = static_cast<int64_t>(dims.size());
    const auto bound = [rank](int64_t at) {
      return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
    };
    const int64_t begin = bound(spec.Int("start", 0));
    const int64_t end = std::max(begin, bound(spec.Int("end", rank)));
    written = Dims(dims.begin() + begin, dims.begin() + end);
  }
  CKPLAN_RETURN_IF_ERROR(
      RequireElements(spec, spec.output(0), "its output", static_cast<int64_t>(written.size())));
  return written;
}

Result<AxisView> ReadOneHotShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, 3));
  const Operand& y = spec.output(0);
  CKPLAN_RETURN_IF_ERROR(RequireNumber(spec, spec.input(0), "its tensor of indices"));
  CKPLAN_RETURN_IF_ERROR(RequireElements(spec, spec.input(2), "its pair of values", 2));
  CKPLAN_RETURN_IF_ERROR(RequireType(spec, spec.input(2), "its pair of values", y.type));
  Dims expected = spec.input(0).dims;
  CKPLAN_ASSIGN_OR_RETURN(const size_t axis,
                          NormalAxis(spec, spec.Int("axis", -1), expected.size() + 1));
  // A depth that is computed during the step is taken from the output's size.
  int64_t depth = axis < y.dims.size() ? y.dims[axis] : 0;
  const auto& known = spec.input(1).known;
  if (known.has_value() && known->ints.size() == 1) depth = known->ints[0];
  expected.insert(expected.begin() + static_cast<std::ptrdiff_t>(axis), depth);
  CKPLAN_RETURN_IF_ERROR(RequireDims(spec, y, "its output", expected));
  return ViewAlong(y.dims, axis);
}

Result<TriluShape> ReadTriluShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  const Dims& dims = spec.input(0).dims;
  if (dims.size() < 2) {
    return InvalidOp(spec, fmt::format("its input has {} axes instead of 2 or more", dims.size()));
  }
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<Dims> k, KnownInts(spec, 1, "k"));
  if (k.has_value() && k->size() != 1) return InvalidOp(spec, "its k is not one number");
  TriluShape shape;
  shape.rows = dims[dims.size() - 2];
  shape.columns = dims.back();
  shape.diagonal =
      std::clamp(k.has_value() ? (*k)[0] : int64_t{0}, -shape.rows - 1, shape.columns + 1);
  shape.is_upper = spec.Int("upper", 1) != 0;
  return shape;
}

std::span<const FamilyRow> GenerateFamily() {
  static constexpr FamilyRow kRows[] = {
      {"ConstantOfShape", ValidateBy<ReadConstantOfShape>},
      {"Shape", ValidateBy<ReadShapeOf>},
      {"Size", ValidateBy<ReadShapeOf>},
      {"Range", ValidateRange},
      {"OneHot", ValidateBy<ReadOneHotShape>},
      {"EyeLike", ValidateEyeLike},
      {"Trilu", ValidateBy<ReadTriluShape>, "k must be known before the step"},
  };
  return kRows;
}

namespace {

Result<Done> ValidateDrawn(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, 0));
  return RequireFloat(spec, spec.output(0), "its output");
}

Result<Done> ValidateDrawnLike(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireSameDims(spec));
  return ValidateDrawn(spec);
}

Result<Done> ValidateBernoulli(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireSameDims(spec));
  return RequireFloat(spec, spec.input(0), "its input");
}

// Before opset 10 the mask has the type of the input instead of bool.
Result<Done> ValidateMask(const OpSpec& spec) {
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
  if (spec.output(1).is_present) CKPLAN_RETURN_IF_ERROR(ValidateMask(spec));
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
      {"Dropout", ValidateBy<ReadDropoutRatio>, "the ratio must be known before the step"},
      {"RandomUniform", ValidateDrawn},
      {"RandomUniformLike", ValidateDrawnLike},
      {"RandomNormal", ValidateDrawn},
      {"RandomNormalLike", ValidateDrawnLike},
      {"Bernoulli", ValidateBernoulli},
  };
  return kRows;
}

}  // namespace ckplan
