// Folds operators that make, join, cut and reduce tensors: see fold.h.
#include <algorithm>
#include <cmath>

#include "lib/base/units.h"
#include "lib/files/model/constant.h"
#include "lib/files/model/fold_rules.h"

namespace ckplan::folding {

using onnx::NodeProto;
using onnx::TensorProto;

namespace {

// Returns the sizes of the parts: the attribute or input, or else equal parts with a smaller last
// one.
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

}  // namespace

// ---- Shapes and producers
// ------------------------------------------------------------------------

Folded FoldShape(const FoldRule&, const NodeProto& node, const Inputs& inputs) {
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

Folded FoldSize(const FoldRule&, const NodeProto&, const Inputs& inputs) {
  if (inputs.empty() || inputs[0].dims == nullptr) return std::nullopt;
  const auto count = ElementCount(*inputs[0].dims);
  if (!count.has_value()) return std::nullopt;
  return One(ConstantValue{TensorProto::INT64, {}, {*count}, {}});
}

Folded FoldConstant(const FoldRule&, const NodeProto& node, const Inputs&) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    const std::string& name = attribute.name();
    ConstantValue value;
    if (name == "value") {
      auto read = ReadTensor(attribute.t());
      if (!read.has_value()) return std::nullopt;
      return One(std::move(*read));
    }
    if (name == "sparse_value") {
      auto read = ReadSparse(attribute.sparse_tensor());
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

Folded FoldConstantOfShape(const FoldRule&, const NodeProto& node, const Inputs& inputs) {
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

Folded FoldRange(const FoldRule&, const NodeProto&, const Inputs& inputs) {
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

Folded FoldConcat(const FoldRule&, const NodeProto& node, const Inputs& inputs) {
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
    const auto sum = CheckedAdd(value.dims[at], expected[at]);
    if (!sum) return std::nullopt;
    value.dims[at] = *sum;
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

Folded FoldSplit(const FoldRule&, const NodeProto& node, const Inputs& inputs) {
  const ConstantValue* data = Known(inputs, 0);
  if (data == nullptr || data->dims.empty()) return std::nullopt;
  const auto rank = static_cast<int64_t>(data->dims.size());
  int64_t axis = IntAttribute(node, "axis", 0);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return std::nullopt;
  const auto at = static_cast<size_t>(axis);
  const auto sizes = SplitSizes(node, inputs, data->dims[at]);
  if (!sizes.has_value()) return std::nullopt;
  const auto size = static_cast<int64_t>(data->size());
  // The number of elements per position on the axis, and of the whole axis.
  const int64_t inner = size == 0 ? 0 : StridesOf(data->dims)[at];
  const int64_t row = inner * data->dims[at];
  std::vector<ConstantValue> outputs;
  int64_t begin = 0;
  for (const int64_t part : *sizes) {
    ElementMap map{data->dims, {}};
    map.dims[at] = part;
    for (int64_t start = begin * inner; start < size; start += row) {
      for (int64_t i = 0; i < part * inner; ++i)
        map.sources.push_back(static_cast<size_t>(start + i));
    }
    outputs.push_back(Pick(*data, std::move(map)));
    if (outputs.back().size() != static_cast<size_t>(*ElementCount(outputs.back().dims))) {
      return std::nullopt;
    }
    begin += part;
  }
  return outputs;
}

// Joins the elements of each result in their order. A reduction of nothing isn't folded.
Folded FoldReduce(const FoldRule& rule, const NodeProto& node, const Inputs& inputs) {
  const ConstantValue* data = Known(inputs, 0);
  if (data == nullptr || data->size() == 0) return std::nullopt;
  const bool lacks_function = data->is_float() && rule.join_reals == nullptr;
  const size_t rank = data->dims.size();
  const auto axes = ReadAxes(node, inputs, 1, rank);
  if (lacks_function || !axes.has_value()) return std::nullopt;
  const bool is_noop = IntAttribute(node, "noop_with_empty_axes", 0) != 0;
  std::vector<bool> is_reduced(rank, axes->values.empty() && !is_noop);
  for (const int64_t axis : axes->values) is_reduced[static_cast<size_t>(axis)] = true;
  const bool keeps = IntAttribute(node, "keepdims", 1) != 0;
  Dims kept = data->dims;  // 1 where it is reduced.
  ConstantValue value{data->elem_type, {}, {}, {}};
  for (size_t axis = 0; axis < rank; ++axis) {
    if (is_reduced[axis]) kept[axis] = 1;
    if (keeps || !is_reduced[axis]) value.dims.push_back(kept[axis]);
  }
  const std::vector<int64_t> strides = StridesOf(data->dims);
  const std::vector<int64_t> kept_strides = StridesOf(kept);
  const auto count = static_cast<size_t>(*ElementCount(kept));
  std::vector<bool> is_begun(count, false);
  (data->is_float() ? value.reals.resize(count) : value.ints.resize(count));
  for (size_t i = 0; i < data->size(); ++i) {
    size_t to = 0;
    for (size_t axis = 0; axis < rank; ++axis) {
      const int64_t place = static_cast<int64_t>(i) / strides[axis] % data->dims[axis];
      if (!is_reduced[axis]) to += static_cast<size_t>(place * kept_strides[axis]);
    }
    if (data->is_float()) {
      const double x = data->reals[i];
      value.reals[to] = is_begun[to] ? rule.join_reals(value.reals[to], x) : x;
    } else {
      const std::optional<int64_t> joined =
          is_begun[to] ? rule.join_ints(value.ints[to], data->ints[i]) : data->ints[i];
      if (!joined.has_value()) return std::nullopt;
      value.ints[to] = *joined;
    }
    is_begun[to] = true;
  }
  return One(std::move(value));
}

Folded FoldNonZero(const FoldRule&, const NodeProto&, const Inputs& inputs) {
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

}  // namespace ckplan::folding
