// Sequences whose parts are known: see sequences.h.
#include <fmt/format.h>

#include <algorithm>

#include "lib/files/model/expander.h"
#include "lib/files/model/sequences.h"

namespace ckplan {

namespace {

using onnx::NodeProto;

// The approximate memory of the parts of sequences.
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
  // Without a position the end is meant: the last part, or the place after it.
  int64_t position = is_insert ? count : count - 1;
  if (has_position) {
    const std::optional<int64_t> known = KnownScalar(inputs[position_input]);
    if (!known) return false;
    position = *known < 0 ? *known + count : *known;
  }
  if (position < 0 || position > count - (is_insert ? 0 : 1)) {
    builder_.AddFault(fmt::format("node \"{}\" ({}) names position {} of a sequence of {}",
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

// An optional value whose presence is known is the value.
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
