#include "lib/model/fold.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/base/checked.h"
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

// Picks elements of one tensor in a new order.
ConstantValue Pick(const ConstantValue& from, ElementMap map) {
  ConstantValue value{from.elem_type, std::move(map.dims), {}, {}};
  for (const size_t source : map.sources) {
    if (from.is_float()) {
      value.reals.push_back(from.reals[source]);
    } else {
      value.ints.push_back(from.ints[source]);
    }
  }
  return value;
}

// ---- Elementwise ------------------------------------------------------------------------------

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

// ---- Shapes and makers ------------------------------------------------------------------------

Folded FoldShape(const NodeProto& node, const Inputs& inputs) {
  if (inputs.empty() || inputs[0].dims == nullptr) return std::nullopt;
  const Dims& dims = *inputs[0].dims;
  const auto rank = static_cast<int64_t>(dims.size());
  const auto place = [rank](int64_t i) {
    return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank);
  };
  const int64_t start = place(IntAttribute(node, "start", 0));
  const int64_t end = std::max(start, place(IntAttribute(node, "end", rank)));
  ConstantValue value{TensorProto::INT64, {end - start}, {}, {}};
  value.ints.assign(dims.begin() + start, dims.begin() + end);
  return One(std::move(value));
}

Folded FoldSize(const NodeProto&, const Inputs& inputs) {
  if (inputs.empty() || inputs[0].dims == nullptr) return std::nullopt;
  const auto count = ElementCount(*inputs[0].dims);
  if (!count.has_value()) return std::nullopt;
  return One(ConstantValue{TensorProto::INT64, {}, {*count}, {}});
}

Folded FoldConstant(const NodeProto& node, const Inputs&) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    const std::string& name = attribute.name();
    ConstantValue value;
    if (name == "value") {
      auto read = ReadTensor(attribute.t());
      if (!read.has_value()) return std::nullopt;
      return One(std::move(*read));
    }
    if (name == "value_int") return One({TensorProto::INT64, {}, {attribute.i()}, {}});
    if (name == "value_float") return One({TensorProto::FLOAT, {}, {}, {attribute.f()}});
    if (name == "value_ints") {
      value = {TensorProto::INT64, {attribute.ints_size()}, {}, {}};
      value.ints.assign(attribute.ints().begin(), attribute.ints().end());
    } else if (name == "value_floats") {
      value = {TensorProto::FLOAT, {attribute.floats_size()}, {}, {}};
      value.reals.assign(attribute.floats().begin(), attribute.floats().end());
    } else {
      continue;
    }
    if (!IsSmall(value.dims)) return std::nullopt;
    return One(std::move(value));
  }
  return std::nullopt;
}

Folded FoldConstantOfShape(const NodeProto& node, const Inputs& inputs) {
  const ConstantValue* shape = Known(inputs, 0);
  if (shape == nullptr || shape->is_float() || !IsSmall(shape->ints)) return std::nullopt;
  ConstantValue fill{TensorProto::FLOAT, {}, {}, {0.0}};
  if (const onnx::AttributeProto* attribute = FindAttribute(node, "value"); attribute != nullptr) {
    auto read = ReadTensor(attribute->t());
    if (!read.has_value() || read->size() != 1) return std::nullopt;
    fill = std::move(*read);
  }
  const auto count = static_cast<size_t>(*ElementCount(shape->ints));
  return One(Pick(fill, {shape->ints, std::vector<size_t>(count, 0)}));
}

Folded FoldRange(const NodeProto&, const Inputs& inputs) {
  if (inputs.size() != 3 || !AllKnown(inputs)) return std::nullopt;
  for (const FoldInput& input : inputs) {
    if (input.value->size() != 1) return std::nullopt;
  }
  const ConstantValue& start = *inputs[0].value;
  const auto at = [&inputs](size_t i) {
    const ConstantValue& value = *inputs[i].value;
    return value.is_float() ? value.reals[0] : static_cast<double>(value.ints[0]);
  };
  const double count = at(2) == 0 ? 0 : std::ceil((at(1) - at(0)) / at(2));
  if (!(count <= static_cast<double>(kMaxFoldedElements))) return std::nullopt;
  const int64_t size = std::max<int64_t>(0, static_cast<int64_t>(count));
  ConstantValue value{start.elem_type, {size}, {}, {}};
  for (int64_t i = 0; i < size; ++i) {
    if (start.is_float()) {
      value.reals.push_back(at(0) + static_cast<double>(i) * at(2));
    } else {
      value.ints.push_back(start.ints[0] + i * inputs[2].value->ints[0]);
    }
  }
  return One(std::move(value));
}

// ---- Joining, cutting, reducing ---------------------------------------------------------------

Folded FoldConcat(const NodeProto& node, const Inputs& inputs) {
  if (!AllKnown(inputs)) return std::nullopt;
  const ConstantValue& first = *inputs[0].value;
  const auto rank = static_cast<int64_t>(first.dims.size());
  int64_t axis = IntAttribute(node, "axis", 0);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return std::nullopt;
  const auto at = static_cast<size_t>(axis);
  ConstantValue value{first.elem_type, first.dims, {}, {}};
  value.dims[at] = 0;
  for (const FoldInput& input : inputs) {
    Dims expected = value.dims;
    if (input.value->dims.size() != expected.size()) return std::nullopt;
    expected[at] = input.value->dims[at];
    if (input.value->dims != expected || input.value->elem_type != first.elem_type) {
      return std::nullopt;
    }
    value.dims[at] += expected[at];
  }
  if (!IsSmall(value.dims)) return std::nullopt;
  int64_t outer = 1;
  for (size_t i = 0; i < at; ++i) outer *= value.dims[i];
  for (int64_t o = 0; o < outer; ++o) {
    for (const FoldInput& input : inputs) {
      const auto block = static_cast<std::ptrdiff_t>(input.value->size()) / outer;
      const auto append = [&](const auto& from, auto& to) {
        to.insert(to.end(), from.begin() + o * block, from.begin() + (o + 1) * block);
      };
      if (value.is_float()) {
        append(input.value->reals, value.reals);
      } else {
        append(input.value->ints, value.ints);
      }
    }
  }
  return One(std::move(value));
}

// The sizes of the parts: given as attribute or input, else equal with a smaller last one.
std::optional<Dims> SplitSizes(const NodeProto& node, const Inputs& inputs, int64_t size) {
  Dims sizes = IntsAttribute(node, "split");
  if (inputs.size() > 1 && inputs[1].dims != nullptr) {
    if (inputs[1].value == nullptr) return std::nullopt;
    sizes = inputs[1].value->ints;
  }
  const int64_t parts = node.output_size();
  if (sizes.empty() && parts > 0) {
    const int64_t chunk = (size + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i)
      sizes.push_back(std::clamp<int64_t>(size - i * chunk, 0, chunk));
  }
  int64_t sum = 0;
  for (const int64_t part : sizes) {
    if (part < 0 || part > size) return std::nullopt;
    sum += part;
  }
  if (sum != size || static_cast<int64_t>(sizes.size()) != parts) return std::nullopt;
  return sizes;
}

Folded FoldSplit(const NodeProto& node, const Inputs& inputs) {
  const ConstantValue* data = Known(inputs, 0);
  if (data == nullptr || data->dims.empty()) return std::nullopt;
  const auto rank = static_cast<int64_t>(data->dims.size());
  int64_t axis = IntAttribute(node, "axis", 0);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return std::nullopt;
  const auto at = static_cast<size_t>(axis);
  const auto sizes = SplitSizes(node, inputs, data->dims[at]);
  if (!sizes.has_value()) return std::nullopt;
  const int64_t inner = StridesOf(data->dims)[at];
  const int64_t row = inner * data->dims[at];
  std::vector<ConstantValue> outputs;
  int64_t begin = 0;
  for (const int64_t part : *sizes) {
    ElementMap map{data->dims, {}};
    map.dims[at] = part;
    for (int64_t start = begin * inner; start < static_cast<int64_t>(data->size()); start += row) {
      for (int64_t i = 0; i < part * inner; ++i)
        map.sources.push_back(static_cast<size_t>(start + i));
      if (row == 0) break;
    }
    outputs.push_back(Pick(*data, std::move(map)));
    if (outputs.back().size() != static_cast<size_t>(*ElementCount(outputs.back().dims))) {
      return std::nullopt;
    }
    begin += part;
  }
  return outputs;
}

// Only over all elements of integer vectors: that is how sizes are multiplied or summed.
Folded FoldReduce(const NodeProto& node, const Inputs& inputs) {
  const ConstantValue* data = Known(inputs, 0);
  if (data == nullptr || data->is_float() || data->dims.size() > 1 || data->ints.empty()) {
    return std::nullopt;
  }
  const auto axes = ReadAxes(node, inputs, 1, data->dims.size());
  const bool is_noop = IntAttribute(node, "noop_with_empty_axes", 0) != 0;
  if (!axes.has_value() || (axes->values.empty() && is_noop)) return std::nullopt;
  const std::string& op = node.op_type();
  const std::string_view step = op == "ReduceProd"  ? "Mul"
                                : op == "ReduceSum" ? "Add"
                                : op == "ReduceMin" ? "Min"
                                                    : "Max";
  std::optional<int64_t> result = data->ints[0];
  for (size_t i = 1; i < data->ints.size() && result.has_value(); ++i) {
    result = IntBinary(step, *result, data->ints[i]);
  }
  if (!result.has_value()) return std::nullopt;
  const bool keeps = IntAttribute(node, "keepdims", 1) != 0;
  return One({data->elem_type, Dims(keeps ? data->dims.size() : 0, 1), {*result}, {}});
}

Folded FoldNonZero(const NodeProto&, const Inputs& inputs) {
  const ConstantValue* data = Known(inputs, 0);
  if (data == nullptr || data->dims.empty()) return std::nullopt;
  std::vector<size_t> places;
  for (size_t i = 0; i < data->size(); ++i) {
    if (data->is_float() ? data->reals[i] != 0 : data->ints[i] != 0) places.push_back(i);
  }
  const std::vector<int64_t> strides = StridesOf(data->dims);
  const auto rank = static_cast<int64_t>(data->dims.size());
  ConstantValue value{TensorProto::INT64, {rank, static_cast<int64_t>(places.size())}, {}, {}};
  if (!IsSmall(value.dims)) return std::nullopt;
  for (size_t axis = 0; axis < strides.size(); ++axis) {
    for (const size_t place : places) {
      value.ints.push_back(static_cast<int64_t>(place) / strides[axis] % data->dims[axis]);
    }
  }
  return One(std::move(value));
}

struct FoldRule {
  std::string_view op;
  Folded (*fold)(const NodeProto&, const Inputs&);
};

constexpr FoldRule kFoldRules[] = {
    {"Constant", FoldConstant},
    {"Shape", FoldShape},
    {"Size", FoldSize},
    {"ConstantOfShape", FoldConstantOfShape},
    {"Range", FoldRange},
    {"Concat", FoldConcat},
    {"Split", FoldSplit},
    {"Cast", FoldCast},
    {"CastLike", FoldCast},
    {"Where", FoldWhere},
    {"NonZero", FoldNonZero},
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
    {"ReduceProd", FoldReduce},
    {"ReduceSum", FoldReduce},
    {"ReduceMin", FoldReduce},
    {"ReduceMax", FoldReduce},
};

}  // namespace

Folded FoldNode(const NodeProto& node, const Inputs& inputs) {
  for (const FoldRule& rule : kFoldRules) {
    if (rule.op == node.op_type()) return rule.fold(node, inputs);
  }
  auto map = MapElements(node, inputs);
  if (!map.has_value()) return std::nullopt;
  return One(Pick(*inputs[0].value, std::move(*map)));
}

}  // namespace ckplan
