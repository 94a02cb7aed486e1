#include "lib/files/model/sequences.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/units.h"
#include "lib/files/model/expander.h"

namespace ckplan {
namespace {

using onnx::NodeProto;

// Divides `dim` into parts of `size` and a smaller last one for the rest.
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

// Sequences with known parts: see sequences.h.

namespace {

using onnx::NodeProto;

// Limits the approximate memory of the parts of sequences.
constexpr int64_t kMaxPartBytes = int64_t{1} << 28;

bool IsOperator(const NodeProto& node, std::string_view type) {
  return IsStandard(node) && node.op_type() == type && node.output_size() == 1 &&
         !node.output(0).empty();
}

}  // namespace

bool Expander::AddSequenceOperation(const NodeProto& node, const Values& inputs, Scope& scope) {
  return AddSequenceSplit(node, inputs, scope) || AddSequenceConstruct(node, inputs, scope) ||
         AddSequenceChange(node, inputs, scope) || AddSequencePart(node, inputs, scope) ||
         AddSequenceLength(node, inputs, scope) || AddSequenceConcat(node, inputs, scope) ||
         AddOptional(node, inputs, scope);
}

const Expander::Parts* Expander::PartsOf(ValueIndex value) const {
  const auto found = sequences_.find(value);
  return found == sequences_.end() ? nullptr : &found->second;
}

bool Expander::AddSequence(const NodeProto& node, Parts parts, Scope& scope) {
  part_bytes_ += static_cast<int64_t>(sizeof(ModelValue) + parts.size() * sizeof(Part));
  if (part_bytes_ > kMaxPartBytes) return false;
  const ValueIndex value = builder_.AddValue(node.output(0), scope, ModelValue::Source::kOperation);
  sequences_[value] = std::move(parts);
  return true;
}

bool Expander::AddSequenceSplit(const NodeProto& node, const Values& inputs, Scope& scope) {
  if (!IsOperator(node, "SplitToSequence") || SchemaOf(node, scope) == nullptr) return false;
  const auto name_bytes = scope.prefix.size() + node.output(0).size();
  const int64_t bytes_of_part = static_cast<int64_t>(sizeof(ModelValue) + 2 * name_bytes);
  const auto split =
      ReadSequenceSplit(model_, node, inputs, (kMaxPartBytes - part_bytes_) / bytes_of_part);
  if (!split.has_value()) return false;
  part_bytes_ += static_cast<int64_t>(split->sizes.size()) * bytes_of_part;
  const int opset = scope.opsets->at("");
  Scope inner = MadeScope(scope);
  Values operands = {inputs[0]};
  if (opset >= kFirstOpsetOfListInputs) {
    operands.push_back(builder_.AppendMade(ListNode(node, "sizes", split->sizes), {}, inner)[0]);
  }
  Parts parts;
  for (const ValueIndex part :
       builder_.AppendMade(SplitNode(node, *split, opset), std::move(operands), inner)) {
    parts.push_back({part, split->keeps_axis ? std::nullopt : std::optional(split->axis)});
  }
  return AddSequence(node, std::move(parts), scope);
}

bool Expander::AddSequenceConstruct(const NodeProto& node, const Values& inputs, Scope& scope) {
  if (!IsOperator(node, "SequenceConstruct") && !IsOperator(node, "SequenceEmpty")) return false;
  Parts parts;
  for (const ValueIndex input : inputs) {
    if (input == kNoValue || sequences_.contains(input)) return false;
    parts.push_back({input, std::nullopt});
  }
  return AddSequence(node, std::move(parts), scope);
}

// SequenceInsert, SequenceErase.
bool Expander::AddSequenceChange(const NodeProto& node, const Values& inputs, Scope& scope) {
  const bool is_insert = IsOperator(node, "SequenceInsert");
  if (!is_insert && !IsOperator(node, "SequenceErase")) return false;
  const Parts* before = inputs.empty() ? nullptr : PartsOf(inputs[0]);
  const size_t position_input = is_insert ? 2 : 1;
  if (before == nullptr || (is_insert && (inputs.size() < 2 || inputs[1] == kNoValue)))
    return false;
  if (is_insert && sequences_.contains(inputs[1])) return false;
  const bool has_position = inputs.size() > position_input && inputs[position_input] != kNoValue;
  const auto count = static_cast<int64_t>(before->size());
  // Without a position, the end is meant: the last part, or the place after it.
  int64_t position = is_insert ? count : count - 1;
  if (has_position) {
    const std::optional<int64_t> known = KnownScalar(inputs[position_input]);
    if (!known) return false;
    position = *known < 0 ? *known + count : *known;
  }
  if (position < 0 || position > count - (is_insert ? 0 : 1)) {
    builder_.AddFault(fmt::format("node \"{}\" ({}) uses position {} of a sequence of {}",
                                  ShortName(node.name()), node.op_type(), position, count));
    builder_.AddUnknownOutputs(node, scope);
    return true;
  }
  Parts parts = *before;
  const auto place = parts.begin() + position;
  if (is_insert) {
    parts.insert(place, {inputs[1], std::nullopt});
  } else {
    parts.erase(place);
  }
  return AddSequence(node, std::move(parts), scope);
}

bool Expander::AddSequencePart(const NodeProto& node, const Values& inputs, Scope& scope) {
  if (!IsOperator(node, "SequenceAt") || inputs.size() != 2) return false;
  const Parts* parts = PartsOf(inputs[0]);
  const std::optional<int64_t> position = KnownScalar(inputs[1]);
  if (parts == nullptr || !position) return false;
  const auto at = PartAt(parts->size(), *position);
  if (!at.has_value()) {
    builder_.AddFault(fmt::format("node \"{}\" (SequenceAt) reads position {} of a sequence of {}",
                                  ShortName(node.name()), *position, parts->size()));
    builder_.AddUnknownOutputs(node, scope);
    return true;
  }
  AddPart(node, Part((*parts)[*at]), scope);
  return true;
}

void Expander::AddPart(const NodeProto& node, const Part& part, Scope& scope) {
  if (!part.lost_axis.has_value()) {
    builder_.AppendMade(IdentityNode(node), {part.value}, scope);
    return;
  }
  const int opset = scope.opsets->at("");
  Values operands = {part.value};
  if (opset >= kFirstOpsetOfListInputs) {
    Scope inner = MadeScope(scope);
    operands.push_back(
        builder_.AppendMade(ListNode(node, "axes", {*part.lost_axis}), {}, inner)[0]);
  }
  builder_.AppendMade(SqueezeNode(node, *part.lost_axis, opset), std::move(operands), scope);
}

ValueIndex Expander::ValueOfPart(const NodeProto& node, const Part& part, size_t position,
                                 Scope& scope) {
  if (!part.lost_axis.has_value()) return part.value;
  NodeProto source;
  source.add_input(node.input_size() > 0 ? node.input(0) : "");
  source.add_output(fmt::format("{}:part{}", node.output(0), position));
  Scope inner = MadeScope(scope);
  AddPart(source, part, inner);
  return *Find(source.output(0), inner);
}

bool Expander::AddSequenceLength(const NodeProto& node, const Values& inputs, Scope& scope) {
  if (!IsOperator(node, "SequenceLength") || inputs.size() != 1) return false;
  const Parts* parts = PartsOf(inputs[0]);
  if (parts == nullptr) return false;
  AddScalar(node, node.output(0), onnx::TensorProto::INT64, static_cast<int64_t>(parts->size()),
            scope);
  return true;
}

bool Expander::AddSequenceConcat(const NodeProto& node, const Values& inputs, Scope& scope) {
  if (!IsOperator(node, "ConcatFromSequence") || inputs.size() != 1) return false;
  const Parts* known = PartsOf(inputs[0]);
  if (known == nullptr || known->empty()) return false;
  const Parts parts = *known;
  const int64_t axis = IntAttribute(node, "axis", 0);
  Values values;
  for (size_t i = 0; i < parts.size(); ++i) {
    values.push_back(ValueOfPart(node, parts[i], i, scope));
  }
  if (IntAttribute(node, "new_axis", 0) != 0) {
    NameOutputs(node, {Stack(node, 0, values, axis, scope)}, scope);
    return true;
  }
  builder_.AppendMade(ConcatNode(node, node.output(0), values.size(), axis), values, scope);
  return true;
}

// An optional value that is known to exist is the value itself.
bool Expander::AddOptional(const NodeProto& node, const Values& inputs, Scope& scope) {
  const bool has_value = inputs.size() == 1 && inputs[0] != kNoValue;
  if (has_value && (IsOperator(node, "Optional") || IsOperator(node, "OptionalGetElement"))) {
    const ModelValue& value = model_.value(inputs[0]);
    if (value.type.has_optional_type() || dead_ends_.contains(inputs[0])) return false;
    NameOutputs(node, {inputs[0]}, scope);
    return true;
  }
  if (has_value && IsOperator(node, "Identity") && sequences_.contains(inputs[0])) {
    NameOutputs(node, {inputs[0]}, scope);
    return true;
  }
  if (!IsOperator(node, "OptionalHasElement")) return false;
  if (has_value && model_.value(inputs[0]).type.has_optional_type()) return false;
  AddScalar(node, node.output(0), onnx::TensorProto::BOOL, has_value ? 1 : 0, scope);
  return true;
}

}  // namespace ckplan
