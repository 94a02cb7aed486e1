#include "lib/problem/ops/softmax.h"

#include <fmt/format.h>

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

std::span<const FamilyRow> LossFamily() {
  static constexpr FamilyRow kRows[] = {
      {"NegativeLogLikelihoodLoss", ValidateBy<ReadLossShape>},
      {"SoftmaxCrossEntropyLoss", ValidateBy<ReadLossShape>},
  };
  return kRows;
}

}  // namespace ckplan
