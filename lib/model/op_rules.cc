#include "lib/model/op_rules.h"

#include <algorithm>
#include <array>

namespace ckplan {

namespace {

using namespace reads;  // NOLINT: the letters of op_class.def.

constexpr OpRule kRows[] = {
#define CKPLAN_OP(type, kind, minimal, torch, statistic, work, amount) \
  {#type,                                                              \
   OpKind::kind,                                                       \
   static_cast<uint16_t>(minimal),                                     \
   static_cast<uint16_t>(torch),                                       \
   Statistic::statistic,                                               \
   WorkKind::work,                                                     \
   amount},
#include "lib/model/op_class.def"
#undef CKPLAN_OP
};

constexpr auto kRules = [] {
  auto rules = std::to_array(kRows);
  std::sort(rules.begin(), rules.end(),
            [](const OpRule& a, const OpRule& b) { return a.type < b.type; });
  return rules;
}();

// What an operator may do that no row speaks of: anything.
constexpr OpRule kUnknownRule{"", OpKind::kUnknown, V | Z | I, V | Z | I};

const Value* ValueAt(const Model::Impl& model, ValueIndex index) {
  return index == kNoValue ? nullptr : &model.value(index);
}

// Dimensions of 1 aside, the order stays.
bool KeepsOrder(const Dims& dims, const std::vector<int64_t>& order) {
  int64_t last = -1;
  for (const int64_t axis : order) {
    if (axis < 0 || axis >= static_cast<int64_t>(dims.size())) return false;
    if (dims[static_cast<size_t>(axis)] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

bool IsTransposeView(const Operation& operation, const Dims& dims) {
  std::vector<int64_t> order = IntsAttribute(*operation.node, "perm");
  if (order.empty()) {
    for (size_t i = dims.size(); i-- > 0;) order.push_back(static_cast<int64_t>(i));
  }
  return KeepsOrder(dims, order);
}

// A slice of the input's own shape is the input, unless a step turns an axis around.
bool IsSliceView(const Model::Impl& model, const Operation& operation) {
  const Value* steps = ValueAt(model, operation.input(4));
  if (steps == nullptr) return true;
  return steps->constant != nullptr &&
         std::all_of(steps->constant->ints.begin(), steps->constant->ints.end(),
                     [](int64_t step) { return step > 0; });
}

bool IsPadView(const Model::Impl& model, const Operation& operation) {
  // Negative pads may cut what positive ones add: the shape alone does not tell.
  const Value* pads = ValueAt(model, operation.input(1));
  std::vector<int64_t> amounts = IntsAttribute(*operation.node, "pads");
  if (pads != nullptr) {
    if (pads->constant == nullptr) return false;
    amounts = pads->constant->ints;
  }
  return std::all_of(amounts.begin(), amounts.end(), [](int64_t amount) { return amount == 0; });
}

bool MovesNothing(const Model::Impl& model, const Operation& operation) {
  const Value* input = ValueAt(model, operation.input(0));
  const Value* output = ValueAt(model, operation.output(0));
  if (input == nullptr || output == nullptr || operation.outputs.size() != 1) return false;
  const std::string& type = operation.type();
  if (type == "Transpose") return IsTransposeView(operation, input->dims);
  if (input->dims != output->dims) return false;
  if (type == "Concat") return operation.inputs.size() == 1;
  if (type == "Slice") return IsSliceView(model, operation);
  if (type == "Pad") return IsPadView(model, operation);
  return true;  // Split, Expand, Tile: the same shape is the same content.
}

double DropoutRatio(const Model::Impl& model, const Operation& operation) {
  if (const Value* ratio = ValueAt(model, operation.input(1)); ratio != nullptr) {
    const bool is_known = ratio->constant != nullptr && ratio->constant->reals.size() == 1;
    return is_known ? ratio->constant->reals[0] : 0.5;
  }
  return FloatAttribute(*operation.node, "ratio", 0.5);
}

}  // namespace

const OpRule& RuleOf(const Operation& operation) {
  if (!operation.is_standard()) return kUnknownRule;
  const auto found =
      std::lower_bound(kRules.begin(), kRules.end(), operation.type(),
                       [](const OpRule& rule, std::string_view type) { return rule.type < type; });
  return found == kRules.end() || found->type != operation.type() ? kUnknownRule : *found;
}

bool ReadsContents(const OpRule& rule, const Operation& operation, size_t input) {
  switch (rule.kind) {
    case OpKind::kShapeOnly:
    case OpKind::kRandomLike:
      return false;
    case OpKind::kCastLike:
    case OpKind::kView:  // Reshape's shape is known; nothing is read at run time.
      return input == 0;
    case OpKind::kDropout:  // Ratio and mode; in training the mode is known.
      return input == 0;
    case OpKind::kBatchNorm:
      return input < 3;
    default:
      return input < operation.inputs.size();
  }
}

bool IsDifferentiable(const Model::Impl& model, const OpRule& rule, const Operation& operation,
                      size_t input) {
  const Value* value = ValueAt(model, operation.input(input));
  if (value == nullptr || !IsFloatType(value->elem_type)) return false;
  if (!rule.has_gradient() || !ReadsContents(rule, operation, input)) return false;
  const std::string& type = operation.type();
  if (type == "Resize" || type == "Upsample" || type == "Clip" || type == "Pad") return input == 0;
  if (type == "RoiAlign" || type == "MaxRoiPool") return input == 0;
  // The weights of classes are given, not learned.
  if (type == "SoftmaxCrossEntropyLoss" || type == "NegativeLogLikelihoodLoss") return input == 0;
  if (rule.kind == OpKind::kRotary) return input == 0;
  return true;
}

bool IsView(const Model::Impl& model, const OpRule& rule, const Operation& operation) {
  const Value* input = ValueAt(model, operation.input(0));
  const Value* output = ValueAt(model, operation.output(0));
  if (input == nullptr || output == nullptr) return false;
  switch (rule.kind) {
    case OpKind::kView:
      return true;
    case OpKind::kCast:
    case OpKind::kCastLike:
      return input->elem_type == output->elem_type;
    case OpKind::kDropout:
      return DropoutRatio(model, operation) == 0;
    case OpKind::kMayMoveNothing:
      return MovesNothing(model, operation);
    default:
      // A sum or maximum of one operand.
      return operation.inputs.size() == 1 && (rule.type == "Sum" || rule.type == "Mean" ||
                                              rule.type == "Max" || rule.type == "Min");
  }
}

}  // namespace ckplan
