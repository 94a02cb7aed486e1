#include "lib/executor/cuda/shape_rules.h"

#include <algorithm>

#include "lib/executor/cuda/kernel.h"
#include "lib/problem/ops/elementwise.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/sliding.h"
#include "lib/problem/ops/softmax.h"

namespace ckplan::cuda {
namespace {

constexpr size_t kImageAxes = 4;

bool ConvolvesInBothOrders(const OpSpec& spec) {
  if (!MultipliesHalves(spec) || spec.input(0).dims.size() != kImageAxes) return false;
  const auto shape = ReadConvShape(spec);
  return shape.ok() && FitsEvenPads(shape->window);
}

bool PoolsInBothOrders(const OpSpec& spec) {
  if (spec.type == "AveragePool" || spec.type == "GlobalAveragePool") return true;
  // ONNX counts the indices of maxima in the model's order.
  return spec.type == "MaxPool" && !spec.output(1).is_present;
}

}  // namespace

ElementOrders OrdersOf(const OpSpec& spec) {
  if (spec.type == "Conv" || spec.type == "ConvTranspose") {
    return ConvolvesInBothOrders(spec) ? ElementOrders::kEach : ElementOrders::kOfModel;
  }
  const bool is_alike =
      spec.type == "BatchNormalization" || PoolsInBothOrders(spec) || HasStoredOrder(spec);
  return is_alike ? ElementOrders::kAlike : ElementOrders::kOfModel;
}

bool FitsEvenPads(const Window& window) {
  for (size_t i = 0; i < window.rank(); ++i) {
    const int64_t room = window.in[i] + 2 * window.begin[i] - window.extent(i);
    if (room < 0 || room / window.strides[i] + 1 != window.out[i]) return false;
  }
  return true;
}

namespace {

std::optional<LinkKind> KindOf(const OpSpec& spec) {
  if (spec.type == "Relu") return LinkKind::kRelu;
  if (spec.type == "Add") return LinkKind::kAdd;
  if (spec.type == "Sub") return LinkKind::kSub;
  if (spec.type == "Mul") return LinkKind::kMul;
  if (spec.type == "Div") return LinkKind::kDiv;
  if (spec.type == "Tanh") return LinkKind::kTanh;
  if (spec.type == "Dropout") return LinkKind::kDropout;
  if (spec.type == "IsNaN") return LinkKind::kIsNan;
  if (spec.type == "Where") return LinkKind::kWhere;
  if (spec.type == "BatchNormalization") return LinkKind::kBatchNorm;
  if (spec.type == "Gelu") {
    return spec.String("approximate", "none") == "tanh" ? LinkKind::kGeluTanh : LinkKind::kGeluErf;
  }
  if (spec.type != "Pow") return std::nullopt;
  const auto exponent = KnownExponent(spec);
  if (exponent == 2) return LinkKind::kSquare;
  if (exponent == 3) return LinkKind::kCube;
  return std::nullopt;
}

bool IsBinary(LinkKind kind) {
  return kind == LinkKind::kAdd || kind == LinkKind::kSub || kind == LinkKind::kMul ||
         kind == LinkKind::kDiv;
}

// Returns how a chain with this result shape reads `operand`; kNone if it cannot.
LinkOperand OperandOf(const Operand& operand, const Dims& result) {
  if (!IsFloat(operand.type)) return LinkOperand::kNone;
  if (operand.dims == result) return LinkOperand::kWhole;
  const int64_t elements = operand.elements();
  if (elements == 1) return LinkOperand::kScalar;
  const bool is_inner = !result.empty() && !operand.dims.empty() &&
                        operand.dims.back() == result.back() && elements == result.back();
  return is_inner ? LinkOperand::kInner : LinkOperand::kNone;
}

bool HasFloatResult(const OpSpec& spec) { return IsFloat(spec.output(0).type); }

// Only an operator's first result is carried on; Dropout's mask would be a second one.
bool HasOneResult(const OpSpec& spec) {
  return std::none_of(spec.outputs.begin() + 1, spec.outputs.end(),
                      [](const Operand& output) { return output.is_present; });
}

std::optional<ChainLink> FirstLink(const OpSpec& spec) {
  const auto kind = KindOf(spec);
  if (!kind || spec.output(0).elements() == 0) return std::nullopt;
  if (*kind == LinkKind::kBatchNorm) {
    // The moments are computed when the operator is due, and then kept in the statistic.
    if (spec.statistic_bytes == 0 || !IsFloat(spec.input(0).type)) return std::nullopt;
    return ChainLink{*kind, 0, LinkOperand::kNone};
  }
  if (*kind == LinkKind::kWhere || !HasOneResult(spec)) return std::nullopt;
  const size_t first = FirstInput(spec);
  if (!IsFloat(spec.input(first).type) || spec.input(first).dims != spec.output(0).dims) {
    return std::nullopt;
  }
  if (!IsBinary(*kind)) return ChainLink{*kind, 0, LinkOperand::kNone};
  const size_t other = 1 - first;
  const LinkOperand operand = OperandOf(spec.input(other), spec.output(0).dims);
  if (operand == LinkOperand::kNone || !HasFloatResult(spec)) return std::nullopt;
  return ChainLink{*kind, other, operand};
}

std::optional<ChainLink> NextLink(const ChainedOp& op, LinkKind before, const Dims& result) {
  const OpSpec& spec = *op.spec;
  const auto kind = KindOf(spec);
  if (!kind || *kind == LinkKind::kBatchNorm || spec.output(0).dims != result) return std::nullopt;
  if (!HasOneResult(spec)) return std::nullopt;
  if (before == LinkKind::kIsNan || *kind == LinkKind::kWhere) {
    // A condition that selects between a number and a tensor.
    const bool selects = *kind == LinkKind::kWhere && before == LinkKind::kIsNan &&
                         op.carried == 0 && HasFloatResult(spec) &&
                         OperandOf(spec.input(1), result) == LinkOperand::kScalar &&
                         OperandOf(spec.input(2), result) == LinkOperand::kWhole;
    if (!selects) return std::nullopt;
    return ChainLink{*kind, 2, LinkOperand::kWhole};
  }
  if (!IsBinary(*kind)) {
    if (op.carried != 0) return std::nullopt;
    return ChainLink{*kind, 0, LinkOperand::kNone};
  }
  if (op.carried > 1 || !HasFloatResult(spec)) return std::nullopt;
  const size_t other = 1 - op.carried;
  const LinkOperand operand = OperandOf(spec.input(other), result);
  if (operand == LinkOperand::kNone) return std::nullopt;
  return ChainLink{*kind, other, operand};
}

}  // namespace

size_t FirstInput(const OpSpec& first) {
  const bool is_second = first.inputs.size() == 2 && first.input(1).dims == first.output(0).dims &&
                         first.input(0).dims != first.output(0).dims;
  return is_second ? 1 : 0;
}

std::vector<ChainLink> LinksOf(std::span<const ChainedOp> ops) {
  std::vector<ChainLink> links;
  if (ops.empty()) return links;
  const auto first = FirstLink(*ops[0].spec);
  if (!first) return links;
  links.push_back(*first);
  const Dims result = StoredDims(ops[0].spec->output(0));
  for (size_t i = 1; i < ops.size() && i < kMaxLinks; ++i) {
    const auto next = NextLink(ops[i], links.back().kind, result);
    if (!next) break;
    links.push_back(*next);
  }
  return links;
}

bool AreScores(std::span<const ChainedOp> ops) {
  if (ops.size() < 2 || ops[0].spec->type != "Add" || ops[1].spec->type != "Softmax") return false;
  const OpSpec& add = *ops[0].spec;
  const OpSpec& softmax = *ops[1].spec;
  const auto view = ReadSoftmaxShape(softmax);
  if (!view.ok() || view->inner != 1 || !CanHoldRow(view->size)) return false;
  if (!IsFloat(add.output(0).type) || softmax.input(0).dims != add.output(0).dims) return false;
  const size_t scores = FirstInput(add);
  const Operand& mask = add.input(1 - scores);
  if (add.input(scores).dims != add.output(0).dims || mask.dims.empty()) return false;
  // Softmax over several axes reads rows that are longer than the last axis.
  if (add.output(0).dims.back() != view->size || mask.dims.back() != view->size) return false;
  return BroadcastLayout(add.output(0).dims, {mask.dims}).dims.size() <= kMaxMaskAxes;
}

size_t FusibleLength(std::span<const ChainedOp> ops) {
  if (AreScores(ops)) return 2;
  const size_t links = LinksOf(ops).size();
  return links < 2 ? 0 : links;
}

}  // namespace ckplan::cuda
