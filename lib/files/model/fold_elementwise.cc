// Folds operators that treat each element separately: see fold.h.
#include <cmath>

#include "lib/files/model/fold_rules.h"

namespace ckplan::folding {

using onnx::NodeProto;
using onnx::TensorProto;

namespace {

// Both operands, each broadcast to the shape of the result.
struct Pairs {
  Dims dims;
  std::vector<size_t> left, right;  // The source positions for each element of the result.
};

std::optional<Pairs> PairUp(const ConstantValue& a, const ConstantValue& b) {
  auto dims = BroadcastDims(a.dims, b.dims);
  if (!dims.has_value() || !IsSmall(*dims) || a.is_float() != b.is_float()) return std::nullopt;
  auto left = BroadcastSources(a.dims, *dims);
  auto right = BroadcastSources(b.dims, *dims);
  if (!left.has_value() || !right.has_value()) return std::nullopt;
  return Pairs{std::move(*dims), std::move(*left), std::move(*right)};
}

std::optional<ConstantValue> Join(const FoldRule& rule, const ConstantValue& a,
                                  const ConstantValue& b) {
  const auto pairs = PairUp(a, b);
  if (!pairs.has_value()) return std::nullopt;
  ConstantValue value{a.elem_type, pairs->dims, {}, {}};
  for (size_t i = 0; i < pairs->left.size(); ++i) {
    const size_t l = pairs->left[i];
    const size_t r = pairs->right[i];
    if (a.is_float()) {
      if (rule.join_reals == nullptr) return std::nullopt;
      value.reals.push_back(rule.join_reals(a.reals[l], b.reals[r]));
      continue;
    }
    const auto x = rule.join_ints(a.ints[l], b.ints[r]);
    if (!x.has_value()) return std::nullopt;
    value.ints.push_back(*x);
  }
  NormalizeToType(value);
  return value;
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

}  // namespace

Folded FoldBinary(const FoldRule& rule, const NodeProto&, const Inputs& inputs) {
  if (!AllKnown(inputs)) return std::nullopt;
  std::optional<ConstantValue> value = *inputs[0].value;
  for (size_t i = 1; i < inputs.size() && value.has_value(); ++i) {
    value = Join(rule, *value, *inputs[i].value);
  }
  if (!value.has_value()) return std::nullopt;
  return One(std::move(*value));
}

Folded FoldComparison(const FoldRule& rule, const NodeProto&, const Inputs& inputs) {
  if (inputs.size() != 2 || !AllKnown(inputs)) return std::nullopt;
  const ConstantValue& a = *inputs[0].value;
  const ConstantValue& b = *inputs[1].value;
  const auto pairs = PairUp(a, b);
  if (!pairs.has_value()) return std::nullopt;
  ConstantValue value{TensorProto::BOOL, pairs->dims, {}, {}};
  for (size_t i = 0; i < pairs->left.size(); ++i) {
    const size_t l = pairs->left[i];
    const size_t r = pairs->right[i];
    const bool holds = a.is_float() ? rule.join_reals(a.reals[l], b.reals[r]) != 0
                                    : rule.join_ints(a.ints[l], b.ints[r]) == 1;
    value.ints.push_back(holds ? 1 : 0);
  }
  return One(std::move(value));
}

Folded FoldUnary(const FoldRule& rule, const NodeProto&, const Inputs& inputs) {
  if (!AllKnown(inputs)) return std::nullopt;
  ConstantValue value = *inputs[0].value;
  for (double& x : value.reals) {
    if (rule.change_real == nullptr) return std::nullopt;
    x = rule.change_real(x);
  }
  for (int64_t& x : value.ints) {
    const auto y = rule.change_int == nullptr ? std::nullopt : rule.change_int(x);
    if (!y.has_value()) return std::nullopt;
    x = *y;
  }
  return One(std::move(value));
}

Folded FoldCast(const FoldRule&, const NodeProto& node, const Inputs& inputs) {
  if (Known(inputs, 0) == nullptr) return std::nullopt;
  const bool is_like = node.op_type() == "CastLike";
  const int32_t elem_type =
      is_like ? inputs[1].elem_type : static_cast<int32_t>(IntAttribute(node, "to", 0));
  if (elem_type == 0) return std::nullopt;
  return CastTo(*inputs[0].value, elem_type);
}

Folded FoldWhere(const FoldRule&, const NodeProto&, const Inputs& inputs) {
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

}  // namespace ckplan::folding
