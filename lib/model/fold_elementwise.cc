// Folding of operators that treat each element alone: see fold.h.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/base/checked.h"
#include "lib/model/fold.h"
#include "lib/model/model_impl.h"

namespace ckplan {

namespace {

using Inputs = std::vector<FoldInput>;
using Folded = std::optional<std::vector<ConstantValue>>;
using onnx::NodeProto;
using onnx::TensorProto;

bool IsSmall(const Dims& dims) {
  const auto count = ElementCount(dims);
  return count.has_value() && *count <= kMaxFoldedElements;
}

Folded One(ConstantValue value) {
  NormalizeToType(value);
  std::vector<ConstantValue> outputs;
  outputs.push_back(std::move(value));
  return outputs;
}

const ConstantValue* Known(const Inputs& inputs, size_t i) {
  return i < inputs.size() ? inputs[i].value : nullptr;
}

bool AllKnown(const Inputs& inputs) {
  return !inputs.empty() && std::all_of(inputs.begin(), inputs.end(), [](const FoldInput& input) {
    return input.value != nullptr;
  });
}

std::optional<int64_t> FloorMod(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return b == 0 ? std::nullopt : std::optional<int64_t>(0);
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

std::optional<int64_t> IntPower(int64_t base, int64_t exponent) {
  if (exponent < 0 || exponent > 64) return std::nullopt;
  std::optional<int64_t> power = 1;
  for (; exponent > 0 && power.has_value(); --exponent) power = CheckedMul(*power, base);
  return power;
}

std::optional<int64_t> IntBinary(std::string_view op, int64_t a, int64_t b) {
  if (op == "Add") return CheckedAdd(a, b);
  if (op == "Sub") {
    int64_t difference = 0;
    if (__builtin_sub_overflow(a, b, &difference)) return std::nullopt;
    return difference;
  }
  if (op == "Mul") return CheckedMul(a, b);
  if (op == "Div") {
    if (b == 0 || (b == -1 && a == std::numeric_limits<int64_t>::min())) return std::nullopt;
    return a / b;
  }
  if (op == "Mod") return FloorMod(a, b);
  if (op == "Pow") return IntPower(a, b);
  if (op == "Min") return std::min(a, b);
  if (op == "Max") return std::max(a, b);
  if (op == "And") return (a != 0 && b != 0) ? 1 : 0;
  if (op == "Or") return (a != 0 || b != 0) ? 1 : 0;
  if (op == "Xor") return ((a != 0) != (b != 0)) ? 1 : 0;
  return std::nullopt;
}

std::optional<double> RealBinary(std::string_view op, double a, double b) {
  if (op == "Add") return a + b;
  if (op == "Sub") return a - b;
  if (op == "Mul") return a * b;
  if (op == "Div") return a / b;
  if (op == "Mod") return std::fmod(a, b);
  if (op == "Pow") return std::pow(a, b);
  if (op == "Min") return std::min(a, b);
  if (op == "Max") return std::max(a, b);
  return std::nullopt;
}

template <typename T>
std::optional<int64_t> Compare(std::string_view op, T a, T b) {
  if (op == "Equal") return a == b ? 1 : 0;
  if (op == "Less") return a < b ? 1 : 0;
  if (op == "Greater") return a > b ? 1 : 0;
  if (op == "LessOrEqual") return a <= b ? 1 : 0;
  if (op == "GreaterOrEqual") return a >= b ? 1 : 0;
  return std::nullopt;
}

bool IsComparison(std::string_view op) { return Compare<int>(op, 0, 0).has_value(); }

std::optional<ConstantValue> BinaryPair(std::string_view op, const ConstantValue& a,
                                        const ConstantValue& b) {
  const auto dims = BroadcastDims(a.dims, b.dims);
  if (!dims.has_value() || !IsSmall(*dims) || a.is_float() != b.is_float()) return std::nullopt;
  const auto left = BroadcastSources(a.dims, *dims);
  const auto right = BroadcastSources(b.dims, *dims);
  if (!left.has_value() || !right.has_value()) return std::nullopt;
  const bool compares = IsComparison(op);
  ConstantValue value{compares ? int32_t{TensorProto::BOOL} : a.elem_type, *dims, {}, {}};
  for (size_t i = 0; i < left->size(); ++i) {
    const size_t l = (*left)[i];
    const size_t r = (*right)[i];
    if (a.is_float() && !compares) {
      const auto x = RealBinary(op, a.reals[l], b.reals[r]);
      if (!x.has_value()) return std::nullopt;
      value.reals.push_back(*x);
      continue;
    }
    const auto x = !compares      ? IntBinary(op, a.ints[l], b.ints[r])
                   : a.is_float() ? Compare(op, a.reals[l], b.reals[r])
                                  : Compare(op, a.ints[l], b.ints[r]);
    if (!x.has_value()) return std::nullopt;
    value.ints.push_back(*x);
  }
  return value;
}

Folded FoldBinary(const NodeProto& node, const Inputs& inputs) {
  if (!AllKnown(inputs)) return std::nullopt;
  std::optional<ConstantValue> value = *inputs[0].value;
  for (size_t i = 1; i < inputs.size() && value.has_value(); ++i) {
    value = BinaryPair(node.op_type(), *value, *inputs[i].value);
    if (value.has_value()) NormalizeToType(*value);
  }
  if (!value.has_value()) return std::nullopt;
  return One(std::move(*value));
}

// Banker's rounding, as ONNX's Round asks.
double RoundHalfEven(double x) { return std::nearbyint(x); }

std::optional<double> RealUnary(std::string_view op, double x) {
  if (op == "Neg") return -x;
  if (op == "Abs") return std::fabs(x);
  if (op == "Floor") return std::floor(x);
  if (op == "Ceil") return std::ceil(x);
  if (op == "Round") return RoundHalfEven(x);
  if (op == "Sqrt") return std::sqrt(x);
  if (op == "Reciprocal") return 1 / x;
  if (op == "Exp") return std::exp(x);
  if (op == "Log") return std::log(x);
  return std::nullopt;
}

std::optional<int64_t> IntUnary(std::string_view op, int64_t x) {
  if (op == "Not") return x == 0 ? 1 : 0;
  if (op == "Neg") return CheckedMul(x, -1);
  if (op == "Abs") return x < 0 ? CheckedMul(x, -1) : x;
  if (op == "Sign") return x < 0 ? -1 : x > 0 ? 1 : 0;
  return std::nullopt;
}

Folded FoldUnary(const NodeProto& node, const Inputs& inputs) {
  if (!AllKnown(inputs)) return std::nullopt;
  ConstantValue value = *inputs[0].value;
  for (double& x : value.reals) {
    const auto y = RealUnary(node.op_type(), x);
    if (!y.has_value()) return std::nullopt;
    x = *y;
  }
  for (int64_t& x : value.ints) {
    const auto y = IntUnary(node.op_type(), x);
    if (!y.has_value()) return std::nullopt;
    x = *y;
  }
  return One(std::move(value));
}

Folded CastTo(const ConstantValue& from, int32_t elem_type) {
  ConstantValue value{elem_type, from.dims, {}, {}};
  const bool to_bool = elem_type == TensorProto::BOOL;
  if (!to_bool && !IsFloatType(elem_type) && elem_type == TensorProto::STRING) return std::nullopt;
  if (value.is_float()) {
    value.reals = from.reals;
    for (const int64_t x : from.ints) value.reals.push_back(static_cast<double>(x));
    return One(std::move(value));
  }
  value.ints = from.ints;
  for (const double x : from.reals) {
    if (!to_bool && !(std::fabs(x) < 9.2e18)) return std::nullopt;
    value.ints.push_back(to_bool ? (x != 0 ? 1 : 0) : static_cast<int64_t>(x));
  }
  return One(std::move(value));
}

Folded FoldCast(const NodeProto& node, const Inputs& inputs) {
  if (Known(inputs, 0) == nullptr) return std::nullopt;
  const bool is_like = node.op_type() == "CastLike";
  const int32_t elem_type =
      is_like ? inputs[1].elem_type : static_cast<int32_t>(IntAttribute(node, "to", 0));
  if (elem_type == 0) return std::nullopt;
  return CastTo(*inputs[0].value, elem_type);
}

Folded FoldWhere(const NodeProto&, const Inputs& inputs) {
  if (inputs.size() != 3 || !AllKnown(inputs)) return std::nullopt;
  const ConstantValue& x = *inputs[1].value;
  const ConstantValue& y = *inputs[2].value;
  const auto branches = BroadcastDims(x.dims, y.dims);
  if (!branches.has_value() || x.elem_type != y.elem_type) return std::nullopt;
  const auto dims = BroadcastDims(*branches, inputs[0].value->dims);
  if (!dims.has_value() || !IsSmall(*dims)) return std::nullopt;
  const auto condition = BroadcastSources(inputs[0].value->dims, *dims);
  const auto from_x = BroadcastSources(x.dims, *dims);
  const auto from_y = BroadcastSources(y.dims, *dims);
  if (!condition.has_value() || !from_x.has_value() || !from_y.has_value()) return std::nullopt;
  ConstantValue value{x.elem_type, *dims, {}, {}};
  for (size_t i = 0; i < condition->size(); ++i) {
    const bool takes_x = inputs[0].value->ints[(*condition)[i]] != 0;
    const ConstantValue& source = takes_x ? x : y;
    const size_t place = takes_x ? (*from_x)[i] : (*from_y)[i];
    if (source.is_float()) {
      value.reals.push_back(source.reals[place]);
    } else {
      value.ints.push_back(source.ints[place]);
    }
  }
  return One(std::move(value));
}

struct FoldRule {
  std::string_view op;
  Folded (*fold)(const NodeProto&, const Inputs&);
};

constexpr FoldRule kRules[] = {
    {"Cast", FoldCast},
    {"CastLike", FoldCast},
    {"Where", FoldWhere},
    {"Add", FoldBinary},
    {"Sub", FoldBinary},
    {"Mul", FoldBinary},
    {"Div", FoldBinary},
    {"Mod", FoldBinary},
    {"Pow", FoldBinary},
    {"Min", FoldBinary},
    {"Max", FoldBinary},
    {"And", FoldBinary},
    {"Or", FoldBinary},
    {"Xor", FoldBinary},
    {"Equal", FoldBinary},
    {"Less", FoldBinary},
    {"Greater", FoldBinary},
    {"LessOrEqual", FoldBinary},
    {"GreaterOrEqual", FoldBinary},
    {"Neg", FoldUnary},
    {"Abs", FoldUnary},
    {"Floor", FoldUnary},
    {"Ceil", FoldUnary},
    {"Round", FoldUnary},
    {"Sqrt", FoldUnary},
    {"Reciprocal", FoldUnary},
    {"Exp", FoldUnary},
    {"Log", FoldUnary},
    {"Not", FoldUnary},
    {"Sign", FoldUnary},
};

}  // namespace

std::optional<int64_t> ApplyToInts(std::string_view op, int64_t a, int64_t b) {
  return IntBinary(op, a, b);
}

Folded FoldElementwise(const NodeProto& node, const Inputs& inputs) {
  for (const FoldRule& rule : kRules) {
    if (rule.op == node.op_type()) return rule.fold(node, inputs);
  }
  return std::nullopt;
}

}  // namespace ckplan
