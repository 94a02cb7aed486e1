#include "lib/files/model/operation_edits.h"

#include <algorithm>

namespace ckplan {

const onnx::NodeProto* OperationEdits::Keep(onnx::NodeProto node) {
  model_.made_nodes.push_back(std::move(node));
  return &model_.made_nodes.back();
}

void OperationEdits::Replace(ModelOperation& operation, onnx::NodeProto node,
                             std::vector<ValueIndex> inputs, int64_t opset) {
  node.set_name(operation.node->name());
  operation.node = Keep(std::move(node));
  operation.schema = nullptr;
  operation.opset = opset;
  operation.inputs = std::move(inputs);
}

void OperationEdits::SetAttribute(ModelOperation& operation, const std::string& name,
                                  int64_t value) {
  onnx::NodeProto node = *operation.node;
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
  operation.node = Keep(std::move(node));
}

ValueIndex OperationEdits::NewValue(const std::string& name, ValueIndex like) {
  const auto is_taken = [this](const std::string& tried) {
    return std::any_of(model_.values.begin(), model_.values.end(),
                       [&tried](const ModelValue& value) { return value.name == tried; });
  };
  ModelValue value;
  value.name = name;
  for (int i = 1; is_taken(value.name); ++i) value.name = name + "_" + std::to_string(i);
  const ModelValue& from = model_.value(like);
  value.type = from.type;
  value.has_shape = from.has_shape;
  value.elem_type = from.elem_type;
  value.dims = from.dims;
  value.bytes = from.bytes;
  model_.values.push_back(std::move(value));
  return static_cast<ValueIndex>(model_.values.size() - 1);
}

void OperationEdits::InsertBefore(size_t reader, onnx::NodeProto node, std::string name,
                                  std::vector<ValueIndex> inputs, std::vector<ValueIndex> outputs,
                                  int64_t opset) {
  ModelOperation operation;
  node.set_name(name);
  operation.name = std::move(name);
  operation.node = Keep(std::move(node));
  operation.file_node = model_.operations[reader].file_node;
  operation.opset = opset;
  operation.inputs = std::move(inputs);
  operation.outputs = std::move(outputs);
  inserted_.emplace_back(reader, std::move(operation));
}

void OperationEdits::Insert() {
  if (inserted_.empty()) return;
  std::stable_sort(inserted_.begin(), inserted_.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<ModelOperation> operations;
  operations.reserve(model_.operations.size() + inserted_.size());
  std::vector<int32_t> moved_to;  // By the operation's index until now.
  auto next = inserted_.begin();
  for (size_t i = 0; i < model_.operations.size(); ++i) {
    for (; next != inserted_.end() && next->first == i; ++next) {
      operations.push_back(std::move(next->second));
    }
    moved_to.push_back(static_cast<int32_t>(operations.size()));
    operations.push_back(std::move(model_.operations[i]));
  }
  model_.operations = std::move(operations);
  for (ModelValue& value : model_.values) {
    if (value.producer >= 0) value.producer = moved_to[static_cast<size_t>(value.producer)];
  }
  for (size_t i = 0; i < model_.operations.size(); ++i) {
    for (const ValueIndex output : model_.operations[i].outputs) {
      if (output != kNoValue) model_.value(output).producer = static_cast<int32_t>(i);
    }
  }
  inserted_.clear();
}

}  // namespace ckplan
