#include "lib/problem/ops/softmax.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_checks.h"

namespace ckplan {

Result<SoftmaxShape> ReadSoftmaxShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireFloatTensors(spec, 1));
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  const Dims& x = spec.input(0).dims;
  const bool is_one_axis = spec.opset >= 13;
  CKPLAN_ASSIGN_OR_RETURN(const size_t axis,
                          NormalAxis(spec, spec.Int("axis", is_one_axis ? -1 : 1), x.size()));
  SoftmaxShape shape = ViewAlong(x, axis);
  if (is_one_axis) return shape;
  shape.size *= shape.inner;
  shape.inner = 1;
  return shape;
}

bool IsGuarded(const OpSpec& spec) { return spec.Int(kGuardAttribute, 0) != 0; }

std::span<const FamilyRow> SoftmaxFamily() {
  static constexpr FamilyRow kRows[] = {
      {"LogSoftmax", ValidateBy<ReadSoftmaxShape>},
      {"Softmax", ValidateBy<ReadSoftmaxShape>},
  };
  return kRows;
}

namespace {

Result<LossTotal> ReadTotal(const OpSpec& spec) {
  const std::string reduction = spec.String("reduction", "mean");
  if (reduction == "none") return LossTotal::kNone;
  if (reduction == "sum") return LossTotal::kSum;
  if (reduction == "mean") return LossTotal::kMean;
  return InvalidOp(
      spec, fmt::format("attribute reduction is \"{}\" instead of none, sum or mean", reduction));
}

Result<Done> CheckInputs(const OpSpec& spec) {
  const Dims& scores = spec.input(0).dims;
  Dims places = scores;
  places.erase(places.begin() + 1);
  CKPLAN_RETURN_IF_ERROR(RequireIndices(spec, spec.input(1), "its list of labels"));
  CKPLAN_RETURN_IF_ERROR(RequireDims(spec, spec.input(1), "its list of labels", places));
  const Operand& weights = spec.input(2);
  CKPLAN_RETURN_IF_ERROR(RequireOptional(spec, weights, "its list of weights", {scores[1]}));
  if (weights.is_present && spec.input(0).has_gradient && !weights.is_read_by_backward) {
    return UnsupportedOp(spec, "its weights are computed during the step");
  }
  return Done{};
}

Result<Done> CheckOutputs(const OpSpec& spec, LossTotal total) {
  const Dims& scores = spec.input(0).dims;
  const Operand& loss = spec.output(0);
  if (total == LossTotal::kNone) {
    CKPLAN_RETURN_IF_ERROR(RequireOptional(spec, loss, "its loss", spec.input(1).dims));
  } else if (loss.is_present) {
    CKPLAN_RETURN_IF_ERROR(RequireFloat(spec, loss, "its loss"));
    CKPLAN_RETURN_IF_ERROR(RequireElements(spec, loss, "its loss", 1));
  }
  return RequireOptional(spec, spec.output(1), "its second output", scores);
}

}  // namespace

Result<LossShape> ReadLossShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireFloatTensors(spec, 1, 0));
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, 2, 0));
  if (spec.input(0).dims.size() < 2) return InvalidOp(spec, "its scores have no axis of classes");
  LossShape shape;
  CKPLAN_ASSIGN_OR_RETURN(shape.total, ReadTotal(spec));
  CKPLAN_RETURN_IF_ERROR(CheckInputs(spec));
  CKPLAN_RETURN_IF_ERROR(CheckOutputs(spec, shape.total));
  shape.view = ViewAlong(spec.input(0).dims, 1);
  shape.takes_softmax = spec.type == "SoftmaxCrossEntropyLoss";
  shape.has_weights = spec.input(2).is_present;
  shape.ignored = spec.Int("ignore_index", -1);
  return shape;
}

namespace {

struct FunctionName {
  std::string_view name;
  PointwiseFunction function;
  bool holds_elements;
};

constexpr FunctionName kFunctions[] = {
    {"binary_cross_entropy", PointwiseFunction::kCrossEntropy, true},
    {"binary_cross_entropy_with_logits", PointwiseFunction::kCrossEntropyOfScores, false},
    {"huber_loss", PointwiseFunction::kHuber, false},
    {"mse_loss", PointwiseFunction::kSquare, true},
    {"smooth_l1_loss", PointwiseFunction::kSmoothL1, true},
    {"soft_margin_loss", PointwiseFunction::kSoftMargin, true},
};

const FunctionName* FunctionOf(const OpSpec& spec) {
  const std::string name = spec.String(kFunctionAttribute, "");
  const auto* const found = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                         [&name](const auto& row) { return row.name == name; });
  return found == std::end(kFunctions) ? nullptr : found;
}

// Weights have the last axes of the prediction.
Result<Done> RequireRepeated(const OpSpec& spec, const Operand& weights) {
  if (!weights.is_present) return Done{};
  const Dims& dims = spec.input(0).dims;
  const size_t rank = std::min(weights.dims.size(), dims.size());
  const Dims last(dims.end() - static_cast<std::ptrdiff_t>(rank), dims.end());
  return RequireOptional(spec, weights, "its weight", last);
}

}  // namespace

Result<PointwiseLossShape> ReadPointwiseLossShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireFloatTensors(spec, 2, 1));
  const FunctionName* const function = FunctionOf(spec);
  if (function == nullptr) return InvalidOp(spec, "its function is not a loss of PyTorch");
  PointwiseLossShape shape;
  shape.function = function->function;
  shape.threshold = static_cast<float>(spec.Float(kThresholdAttribute, 1));
  shape.elements = spec.input(0).elements();
  CKPLAN_ASSIGN_OR_RETURN(shape.total, ReadTotal(spec));
  const Dims& dims = spec.input(0).dims;
  CKPLAN_RETURN_IF_ERROR(RequireDims(spec, spec.input(1), "its target", dims));
  CKPLAN_RETURN_IF_ERROR(RequireRepeated(spec, spec.input(2)));
  CKPLAN_RETURN_IF_ERROR(RequireRepeated(spec, spec.input(3)));
  if (shape.total == LossTotal::kNone) {
    CKPLAN_RETURN_IF_ERROR(RequireDims(spec, spec.output(0), "its loss", dims));
  } else {
    CKPLAN_RETURN_IF_ERROR(RequireElements(spec, spec.output(0), "its loss", 1));
  }
  const bool trains_target = spec.input(1).has_gradient && !IsSymmetric(shape.function);
  if (trains_target || spec.input(2).has_gradient || spec.input(3).has_gradient) {
    return UnsupportedOp(spec, "only its prediction has a gradient");
  }
  return shape;
}

bool IsSymmetric(PointwiseFunction function) {
  return function == PointwiseFunction::kSquare || function == PointwiseFunction::kHuber ||
         function == PointwiseFunction::kSmoothL1;
}

int64_t PointwiseTemporaries(const OpSpec& spec) {
  constexpr int64_t kOfScores = 1, kWithPositiveWeight = 5;
  const FunctionName* const row = FunctionOf(spec);
  if (row == nullptr) return 0;
  if (row->function == PointwiseFunction::kCrossEntropyOfScores) {
    return spec.input(3).is_present ? kWithPositiveWeight : kOfScores;
  }
  return row->holds_elements && spec.String("reduction", "mean") != "none" ? 1 : 0;
}

std::span<const FamilyRow> LossFamily() {
  static constexpr FamilyRow kRows[] = {
      {"PointwiseLoss", ValidateBy<ReadPointwiseLossShape>},
      {"NegativeLogLikelihoodLoss", ValidateBy<ReadLossShape>},
      {"SoftmaxCrossEntropyLoss", ValidateBy<ReadLossShape>},
  };
  return kRows;
}

}  // namespace ckplan
