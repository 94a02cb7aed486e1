#include "lib/files/model/sequences.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/units.h"

namespace ckplan {

namespace {

using onnx::NodeProto;

// Returns as many parts of `size` as fit, and a smaller one for the rest.
std::optional<std::vector<int64_t>> EqualSizes(int64_t dim, int64_t size, int64_t most_parts) {
  if (size <= 0 || dim <= 0 || (dim - 1) / size >= most_parts) return std::nullopt;
  std::vector<int64_t> sizes(static_cast<size_t>(dim / size), size);
  if (dim % size != 0) sizes.push_back(dim % size);
  return sizes;
}

bool AddUpTo(const std::vector<int64_t>& sizes, int64_t dim) {
  std::optional<int64_t> sum = 0;
  for (const int64_t size : sizes) {
    if (size < 0 || !sum.has_value()) return false;
    sum = CheckedAdd(*sum, size);
  }
  return sum == dim;
}

std::optional<std::vector<int64_t>> ReadSizes(const ConstantValue& split, int64_t dim,
                                              int64_t most_parts) {
  if (split.is_float()) return std::nullopt;
  if (split.dims.empty() && split.ints.size() == 1) {
    return EqualSizes(dim, split.ints[0], most_parts);
  }
  const bool is_list = split.dims.size() == 1 && !split.ints.empty() &&
                       split.ints.size() <= static_cast<size_t>(std::max<int64_t>(most_parts, 0));
  if (!is_list || !AddUpTo(split.ints, dim)) return std::nullopt;
  return split.ints;
}

void AddInts(NodeProto& node, const char* name, const std::vector<int64_t>& list) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INTS);
  for (const int64_t number : list) attribute.add_ints(number);
}

void AddInt(NodeProto& node, const char* name, int64_t number) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(number);
}

NodeProto MakeNode(const char* op, const NodeProto& source) {
  NodeProto node;
  node.set_op_type(op);
  node.set_name(source.name());
  if (source.input_size() > 0) node.add_input(source.input(0));
  return node;
}

}  // namespace

std::optional<SequenceSplit> ReadSequenceSplit(const Model::Impl& model, const NodeProto& node,
                                               const std::vector<ValueIndex>& inputs,
                                               int64_t most_parts) {
  if (inputs.empty() || inputs.size() > 2 || inputs[0] == kNoValue) return std::nullopt;
  const ModelValue& input = model.value(inputs[0]);
  if (!input.has_shape) return std::nullopt;
  const auto rank = static_cast<int64_t>(input.dims.size());
  const int64_t axis = IntAttribute(node, "axis", 0);
  if (axis < -rank || axis >= rank) return std::nullopt;
  SequenceSplit split;
  split.axis = axis < 0 ? axis + rank : axis;
  const int64_t dim = input.dims[static_cast<size_t>(split.axis)];
  std::optional<std::vector<int64_t>> sizes;
  if (inputs.size() < 2 || inputs[1] == kNoValue) {
    split.keeps_axis = IntAttribute(node, "keepdims", 1) != 0;
    sizes = EqualSizes(dim, 1, most_parts);
  } else if (const ConstantValue* given = model.value(inputs[1]).constant.get()) {
    sizes = ReadSizes(*given, dim, most_parts);
  }
  if (!sizes.has_value()) return std::nullopt;
  split.sizes = std::move(*sizes);
  return split;
}

std::optional<size_t> PartAt(size_t parts, int64_t position) {
  const auto count = static_cast<int64_t>(parts);
  if (position < -count || position >= count) return std::nullopt;
  return static_cast<size_t>(position < 0 ? position + count : position);
}

NodeProto ListNode(const NodeProto& source, const char* what, const std::vector<int64_t>& list) {
  NodeProto node;
  node.set_op_type("Constant");
  node.add_output(fmt::format("{}:{}", source.output(0), what));
  AddInts(node, "value_ints", list);
  return node;
}

NodeProto SplitNode(const NodeProto& source, const SequenceSplit& split, int opset) {
  NodeProto node = MakeNode("Split", source);
  for (size_t i = 0; i < split.sizes.size(); ++i) {
    node.add_output(fmt::format("{}:{}", source.output(0), i));
  }
  AddInt(node, "axis", split.axis);
  if (opset >= kFirstOpsetOfListInputs) {
    node.add_input(source.output(0) + ":sizes");
  } else {
    AddInts(node, "split", split.sizes);
  }
  return node;
}

NodeProto IdentityNode(const NodeProto& source) {
  NodeProto node = MakeNode("Identity", source);
  node.add_output(source.output(0));
  return node;
}

NodeProto ConcatNode(const NodeProto& source, const std::string& output, size_t count,
                     int64_t axis) {
  NodeProto node;
  node.set_op_type("Concat");
  node.set_name(source.name());
  for (size_t i = 0; i < count; ++i) node.add_input(fmt::format("{}:{}", output, i));
  node.add_output(output);
  AddInt(node, "axis", axis);
  return node;
}

NodeProto UnsqueezeNode(const NodeProto& source, const std::string& output, int64_t axis,
                        int opset) {
  NodeProto node;
  node.set_op_type("Unsqueeze");
  node.set_name(source.name());
  node.add_input(output + ":whole");
  node.add_output(output);
  if (opset >= kFirstOpsetOfListInputs) {
    node.add_input(output + ":axes");
  } else {
    AddInts(node, "axes", {axis});
  }
  return node;
}

NodeProto SqueezeNode(const NodeProto& source, int64_t axis, int opset) {
  NodeProto node = MakeNode("Squeeze", source);
  node.add_output(source.output(0));
  if (opset >= kFirstOpsetOfListInputs) {
    node.add_input(source.output(0) + ":axes");
  } else {
    AddInts(node, "axes", {axis});
  }
  return node;
}

}  // namespace ckplan
