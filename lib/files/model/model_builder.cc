#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "lib/files/model/constant.h"
#include "lib/files/model/expander.h"
#include "lib/files/model/fold.h"
#include "lib/files/model/infer_types.h"
#include "lib/files/model/operation_faults.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

namespace {

using onnx::GraphProto;
using onnx::NodeProto;

constexpr int64_t kMaxFoldedReals = 64;  // Larger float tensors are weights, never sizes.

}  // namespace

ModelBuilder::ModelBuilder(Model::Impl& model, const BoundDims& bound, BatchFollower* follower)
    : model_(model),
      bound_(bound),
      follower_(follower),
      has_other_shapes_(HasOtherShapes(bound)),
      types_(bound) {}

void ModelBuilder::Reserve(size_t nodes) {
  used_value_names_.reserve(nodes);
  used_node_names_.reserve(nodes);
  model_.operations.reserve(nodes);
  model_.values.reserve(nodes);
}

ValueIndex ModelBuilder::AddValue(const std::string& name, Scope& scope,
                                  ModelValue::Source source) {
  ModelValue value;
  value.name = UniqueName(scope.prefix + name, used_value_names_);
  value.source = source;
  model_.values.push_back(std::move(value));
  const auto index = static_cast<ValueIndex>(model_.values.size() - 1);
  if (!scope.names.emplace(name, index).second) {
    AddFault(fmt::format("\"{}\" is produced twice", ShortName(name)));
  }
  return index;
}

void ModelBuilder::SetType(ModelValue& value, const onnx::TypeProto& type) {
  value.type = type;
  if (!IsFullTensor(type)) return;
  value.elem_type = type.tensor_type().elem_type();
  value.dims.clear();
  for (const auto& dim : type.tensor_type().shape().dim()) value.dims.push_back(dim.dim_value());
  if (value.elem_type == onnx::TensorProto::STRING) return;
  const auto bytes = TensorBytes(value.elem_type, value.dims);
  if (!bytes.has_value() || *bytes > kMaxTotalBytes.count()) {
    AddFault(
        fmt::format("the size of \"{}\", {}, is too large for any machine; use smaller dimensions",
                    ShortName(value.name), TypeText(value.elem_type, value.dims)));
    return;
  }
  value.bytes = Bytes(*bytes);
  value.has_shape = true;
}

void ModelBuilder::AddInputs(Scope& scope) {
  for (const BoundInput& input : bound_.inputs) {
    const ValueIndex index = AddValue(input.input->name(), scope, ModelValue::Source::kGraphInput);
    ModelValue& value = model_.value(index);
    SetType(value, input.type);
    // An empty list, of axes for example, is fully known.
    const bool is_empty_list = value.has_shape && value.dims == Dims{0};
    if (is_empty_list && !IsFloatType(value.elem_type)) {
      value.constant = std::make_unique<ConstantValue>(ConstantValue{value.elem_type, value.dims});
    }
    model_.graph_inputs.push_back(index);
  }
  for (const onnx::ValueInfoProto* input : bound_.not_numbers) {
    const ValueIndex index = AddValue(input->name(), scope, ModelValue::Source::kGraphInput);
    model_.value(index).type = input->type();
  }
  for (const KnownInput& input : bound_.known) {
    const ValueIndex index = AddValue(input.name, scope, ModelValue::Source::kInitializer);
    ModelValue& value = model_.value(index);
    SetType(value, input.type);
    if (!input.contents) continue;
    value.constant = std::make_unique<ConstantValue>(*input.contents);
    value.signature = ModelValue::Signature::kConstant;
  }
}

bool ModelBuilder::AddInitializer(const std::string& name, const onnx::TensorProto& tensor,
                                  const Dims& dims, Scope& scope) {
  const ValueIndex index = AddValue(name, scope, ModelValue::Source::kInitializer);
  ModelValue& value = model_.value(index);
  const onnx::TypeProto type = TensorOfType(tensor.data_type(), dims);
  if (!IsFullTensor(type)) {
    AddFault(fmt::format("initializer \"{}\" has no element type, or a negative dimension",
                         ShortName(name)));
  }
  SetType(value, type);
  value.initializer = &tensor;
  const auto count = ElementCount(value.dims);
  const bool may_be_size = !IsFloatType(value.elem_type) || count <= kMaxFoldedReals;
  return value.has_shape && may_be_size;
}

// Sets the contents of the newest value, if they could be read.
void ModelBuilder::SetContents(std::optional<ConstantValue> contents) {
  if (!contents) return;
  model_.values.back().constant = std::make_unique<ConstantValue>(std::move(*contents));
}

void ModelBuilder::AddInitializers(const GraphProto& graph, Scope& scope, const StepPart* part) {
  for (const auto& tensor : graph.initializer()) {
    if (part != nullptr && !part->Needs(tensor.name())) continue;
    const Dims dims(tensor.dims().begin(), tensor.dims().end());
    if (AddInitializer(tensor.name(), tensor, dims, scope)) SetContents(ReadTensor(tensor));
  }
  for (const auto& sparse : graph.sparse_initializer()) {
    if (part != nullptr && !part->Needs(sparse.values().name())) continue;
    const Dims dims(sparse.dims().begin(), sparse.dims().end());
    const bool is_read = AddInitializer(sparse.values().name(), sparse.values(), dims, scope);
    if (is_read) SetContents(ReadSparse(sparse));
  }
}

std::string ModelBuilder::NodeName(const NodeProto& node, const Scope& scope) {
  std::string name = node.name();
  if (name.empty()) {
    name = node.op_type() + ":" + (node.output_size() > 0 ? node.output(0) : std::string());
  }
  return UniqueName(scope.prefix + name, used_node_names_);
}

void ModelBuilder::AddName(const std::string& name, ValueIndex value, const std::string& producer,
                           Scope& scope) {
  if (!scope.names.emplace(name, value).second) {
    AddFault(fmt::format("\"{}\" is produced twice", ShortName(name)));
    return;
  }
  const onnx::TypeProto& type = model_.value(value).type;
  types_.Compare(name, scope, producer, type, type);
}

void ModelBuilder::AddUnknownOutputs(const NodeProto& node, Scope& scope) {
  for (const std::string& name : node.output()) {
    if (!name.empty()) AddValue(name, scope, ModelValue::Source::kOperation);
  }
}

// Returns the operator set of a body that imports another version than the model, else 0.
int64_t ModelBuilder::OwnOpset(const NodeProto& node, const Scope& scope) const {
  const std::string& domain = PlainDomain(node.domain());
  const auto own = scope.opsets->find(domain);
  if (own == scope.opsets->end()) return 0;
  const auto of_model = model_.identity.opsets.find(domain);
  const bool is_same = of_model != model_.identity.opsets.end() && of_model->second == own->second;
  return is_same ? 0 : own->second;
}

ModelOperation ModelBuilder::MakeOperation(const NodeProto& node, std::vector<ValueIndex> inputs,
                                           const Scope& scope) {
  ModelOperation operation;
  operation.name = NodeName(node, scope);
  operation.node = &node;
  operation.schema = SchemaOf(node, scope);
  operation.file_node = scope.file_node;
  operation.opset = OwnOpset(node, scope);
  operation.inputs = std::move(inputs);
  return operation;
}

const ModelOperation& ModelBuilder::AppendOperation(ModelOperation operation, Scope& scope) {
  const auto index = static_cast<int32_t>(model_.operations.size());
  for (const std::string& name : operation.node->output()) {
    if (name.empty()) {
      operation.outputs.push_back(kNoValue);
      continue;
    }
    operation.outputs.push_back(AddValue(name, scope, ModelValue::Source::kOperation));
    model_.value(operation.outputs.back()).producer = index;
  }
  model_.operations.push_back(std::move(operation));
  SetTypes(model_.operations.back(), scope);
  Fold(model_.operations.back());
  return model_.operations.back();
}

const ModelOperation* ModelBuilder::Append(const NodeProto& node, std::vector<ValueIndex> inputs,
                                           Scope& scope) {
  ModelOperation operation = MakeOperation(node, std::move(inputs), scope);
  const std::string fault = OperandFault(model_, operation);
  if (fault.empty()) return &AppendOperation(std::move(operation), scope);
  AddFault(fmt::format("node \"{}\" ({}) has {}", ShortName(node.name()), operation.type(), fault));
  AddUnknownOutputs(node, scope);
  return nullptr;
}

std::vector<ValueIndex> ModelBuilder::AppendMade(NodeProto made, std::vector<ValueIndex> inputs,
                                                 Scope& scope) {
  model_.made_nodes.push_back(std::move(made));
  const NodeProto& node = model_.made_nodes.back();
  return AppendOperation(MakeOperation(node, std::move(inputs), scope), scope).outputs;
}

void ModelBuilder::AddShapeFault(std::string fault) {
  const auto operation = static_cast<int32_t>(model_.operations.size()) - 1;
  shape_faults_.of_request.insert_or_assign(operation, std::move(fault));
}

// Returns the type of an output that ONNX can't infer, or only partly.
onnx::TypeProto ModelBuilder::WithBatch(onnx::TypeProto type, const ModelOperation& operation,
                                        const onnx::TypeProto& inferred) {
  if (follower_ == nullptr || IsFullTensor(inferred) || !IsFullTensor(type)) return type;
  std::string fault = follower_->ChangeDeclared(model_, operation, &type);
  if (!fault.empty()) AddShapeFault(std::move(fault));
  return type;
}

void ModelBuilder::SetTypes(const ModelOperation& operation, const Scope& scope) {
  InferredTypes inferred = InferTypes(model_, operation);
  for (size_t i = 0; i < operation.outputs.size(); ++i) {
    if (operation.outputs[i] == kNoValue) continue;
    const std::string& name = operation.node->output(static_cast<int>(i));
    onnx::TypeProto type = types_.Choose(name, scope, operation, inferred.outputs[i]);
    SetType(model_.value(operation.outputs[i]),
            WithBatch(std::move(type), operation, inferred.outputs[i]));
  }
  if (has_other_shapes_) FindShapeFault(operation, inferred.fault);
  std::string fault = std::move(inferred.fault);
  if (fault.empty()) fault = ShapeFault(model_, operation);
  if (!fault.empty()) {
    shape_faults_.of_operator[static_cast<int32_t>(model_.operations.size()) - 1] =
        std::move(fault);
  }
}

void ModelBuilder::FindShapeFault(const ModelOperation& operation, const std::string& onnx_fault) {
  const bool is_other = follower_ == nullptr || follower_->ReadsBatch(model_, operation);
  std::string fault = is_other ? MisfitOf(model_, operation, onnx_fault) : "";
  if (fault.empty() && follower_ != nullptr) fault = follower_->SetOutputs(model_, operation);
  if (!fault.empty()) AddShapeFault(std::move(fault));
}

void ModelBuilder::Fold(const ModelOperation& operation) {
  if (!operation.is_standard()) return;
  std::vector<FoldInput> inputs;
  for (const ValueIndex input : operation.inputs) {
    FoldInput known;
    if (input != kNoValue) {
      const ModelValue& value = model_.value(input);
      known.value = value.constant.get();
      known.elem_type = value.elem_type;
      if (value.has_shape) known.dims = &value.dims;
    }
    inputs.push_back(known);
  }
  auto folded = FoldNode(*operation.node, inputs);
  if (!folded.has_value()) return;
  for (size_t i = 0; i < std::min(folded->size(), operation.outputs.size()); ++i) {
    if (operation.outputs[i] == kNoValue) continue;
    ModelValue& value = model_.value(operation.outputs[i]);
    ConstantValue& constant = (*folded)[i];
    if (value.has_shape && (value.dims != constant.dims || value.elem_type != constant.elem_type)) {
      continue;  // ONNX's own rule decides the shape.
    }
    if (!value.has_shape) SetType(value, TensorOfType(constant.elem_type, constant.dims));
    value.constant = std::make_unique<ConstantValue>(std::move(constant));
  }
}

Result<Done> ModelBuilder::CheckFaults(const std::vector<bool>& is_needed,
                                       const std::string& file) {
  if (follower_ != nullptr) {
    // The follower finds the constants that prevent operations from having shapes.
    for (const auto* faults : {&shape_faults_.of_operator, &shape_faults_.of_request}) {
      for (const auto& [operation, fault] : *faults) {
        follower_->RecordOldConstants(model_, model_.operations[static_cast<size_t>(operation)]);
      }
    }
  }
  return CheckShapeFaults(model_, shape_faults_, bound_, is_needed, file);
}

}  // namespace ckplan
