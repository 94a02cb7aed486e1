#include "lib/problem/ops/op_table.h"

#include <algorithm>
#include <array>

namespace ckplan {
namespace {

using namespace reads;   // NOLINT: op_table.def uses these letters.
using namespace traits;  // NOLINT: op_table.def's last column uses these names.

constexpr OpRule kRows[] = {
#define CKPLAN_OP(type, kind, minimal, torch, statistic, work, amount, traits) \
  {#type,                                                                      \
   OpKind::kind,                                                               \
   static_cast<uint16_t>(minimal),                                             \
   static_cast<uint16_t>(torch),                                               \
   Statistic::statistic,                                                       \
   WorkKind::work,                                                             \
   amount,                                                                     \
   static_cast<uint16_t>(traits)},
#include "lib/problem/ops/op_table.def"
#undef CKPLAN_OP
};

constexpr auto kRules = [] {
  auto rules = std::to_array(kRows);
  std::sort(rules.begin(), rules.end(),
            [](const OpRule& a, const OpRule& b) { return a.type < b.type; });
  return rules;
}();

// The row for operators that are not in the table. It makes the most cautious assumptions.
constexpr OpRule kUnknownRule{"", OpKind::kUnknown, V | Z | I, V | Z | I};

struct Spelling {
  std::string_view name;
  std::string_view type;  // ONNX's name.
};

constexpr Spelling kSpellings[] = {
    {"Relu6", "Clip"}, {"Silu", "Swish"}, {"conv", "Conv"}, {"gelu", "Gelu"}, {"relu", "Relu"}};

}  // namespace

bool OpRule::is_elementwise() const {
  return kind == OpKind::kElementwise || kind == OpKind::kAdd || kind == OpKind::kSub ||
         kind == OpKind::kNoGradientElementwise || kind == OpKind::kDropout;
}

bool OpRule::has_gradient() const {
  switch (kind) {
    case OpKind::kNoGradient:
    case OpKind::kNoGradientElementwise:
    case OpKind::kShapeOnly:
    case OpKind::kLiteral:
    case OpKind::kFill:
    case OpKind::kRandom:
    case OpKind::kRandomLike:
      return false;
    default:
      return true;
  }
}

bool OpRule::is_random() const {
  return kind == OpKind::kRandom || kind == OpKind::kRandomLike || kind == OpKind::kDropout;
}

bool OpRule::is_movement() const { return kind >= OpKind::kView && kind <= OpKind::kMoveBySize; }

std::span<const OpRule> AllOpRules() { return kRules; }

const OpRule& RuleOf(std::string_view type) {
  const auto found =
      std::lower_bound(kRules.begin(), kRules.end(), type,
                       [](const OpRule& rule, std::string_view t) { return rule.type < t; });
  return found == kRules.end() || found->type != type ? kUnknownRule : *found;
}

const OpRule& RuleOfSpelling(std::string_view name) {
  for (const Spelling& spelling : kSpellings) {
    if (spelling.name == name) return RuleOf(spelling.type);
  }
  return RuleOf(name);
}

bool HasGradient(std::string_view type) {
  const OpRule& rule = RuleOf(type);
  return rule.is_known() && rule.has_gradient();
}

namespace {

using Dims = std::vector<int64_t>;

// Returns true if the axes keep their order, ignoring axes of size 1.
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

bool IsTransposeView(const OpSpec& spec) {
  const Dims& dims = spec.input(0).dims;
  std::vector<int64_t> order = spec.Ints("perm");
  if (order.empty()) {
    for (size_t i = dims.size(); i-- > 0;) order.push_back(static_cast<int64_t>(i));
  }
  return KeepsOrder(dims, order);
}

// A slice with the shape of its input equals the input, unless a negative step reverses an axis.
bool IsSliceView(const OpSpec& spec) {
  const Operand& steps = spec.input(4);
  if (!steps.is_present) return true;
  return steps.known && std::all_of(steps.known->ints.begin(), steps.known->ints.end(),
                                    [](int64_t step) { return step > 0; });
}

bool IsPadView(const OpSpec& spec) {
  // Negative pads may cut what positive pads add, so equal shapes alone do not prove a view.
  const Operand& pads = spec.input(1);
  if (pads.is_present && !pads.known) return false;
  const std::vector<int64_t> amounts = pads.is_present ? pads.known->ints : spec.Ints("pads");
  return std::all_of(amounts.begin(), amounts.end(), [](int64_t amount) { return amount == 0; });
}

double DropoutRatio(const OpSpec& spec) {
  const Operand& ratio = spec.input(1);
  if (!ratio.is_present) return spec.Float("ratio", 0.5);
  const bool is_known = ratio.known && ratio.known->reals.size() == 1;
  return is_known ? ratio.known->reals[0] : 0.5;
}

// Assumes one output with the shape of the input.
bool IsNoOpMove(const OpRule& rule, const OpSpec& spec) {
  switch (rule.kind) {
    case OpKind::kConcat:
      return spec.inputs.size() == 1;
    case OpKind::kSlice:
      return IsSliceView(spec);
    case OpKind::kPad:
      return IsPadView(spec);
    default:
      return true;  // Split, Expand, Tile: with equal shapes the output equals the input.
  }
}

}  // namespace

bool ReadsContents(const OpRule& rule, size_t input) {
  switch (rule.kind) {
    case OpKind::kShapeOnly:
    case OpKind::kRandomLike:
      return false;
    case OpKind::kCastLike:
    case OpKind::kView:     // The output's shape is known, so Reshape's second input is not read.
    case OpKind::kDropout:  // Ratio and mode are known before a training step.
      return input == 0;
    case OpKind::kBatchNorm:
      return input < 3;
    default:
      return true;
  }
}

bool IsDifferentiable(const OpRule& rule, const OpSpec& spec, size_t input) {
  const Operand& operand = spec.input(input);
  if (!operand.is_present || !IsFloat(operand.model_type())) return false;
  if (!rule.has_gradient() || !ReadsContents(rule, input)) return false;
  return input == 0 || !rule.has(traits::kFirstOnly);
}

bool IsDifferentiable(const OpSpec& spec, size_t input) {
  return IsDifferentiable(RuleOf(spec.type), spec, input);
}

bool PassesGradient(const OpRule& rule, size_t output) {
  return rule.kind != OpKind::kDropout || output == 0;
}

bool IsView(const OpRule& rule, const OpSpec& spec) {
  const Operand& input = spec.input(0);
  const Operand& output = spec.output(0);
  if (!input.is_present || !output.is_present) return false;
  switch (rule.kind) {
    case OpKind::kView:
      return true;
    case OpKind::kCast:
    case OpKind::kCastLike:
      return input.model_type() == output.model_type();
    case OpKind::kDropout:
      return DropoutRatio(spec) == 0;
    case OpKind::kTranspose:
      return spec.outputs.size() == 1 && IsTransposeView(spec);
    case OpKind::kSlice:
    case OpKind::kPad:
    case OpKind::kConcat:
    case OpKind::kMoveBySize:
      return spec.outputs.size() == 1 && input.dims == output.dims && IsNoOpMove(rule, spec);
    default:
      return spec.inputs.size() == 1 && rule.has(traits::kViewIfAlone);
  }
}

}  // namespace ckplan
