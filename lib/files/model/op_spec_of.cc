#include "lib/files/model/op_spec_of.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/files/model/hinted_types.h"
#include "lib/problem/ops/op_hint.h"

namespace ckplan {

namespace {

std::optional<AttributeValue> ValueOf(const onnx::AttributeProto& attribute) {
  switch (attribute.type()) {
    case onnx::AttributeProto::FLOAT:
      return static_cast<double>(attribute.f());
    case onnx::AttributeProto::INT:
      return attribute.i();
    case onnx::AttributeProto::STRING:
      return attribute.s();
    case onnx::AttributeProto::FLOATS:
      return std::vector<double>(attribute.floats().begin(), attribute.floats().end());
    case onnx::AttributeProto::INTS:
      return std::vector<int64_t>(attribute.ints().begin(), attribute.ints().end());
    case onnx::AttributeProto::STRINGS:  // Joined to one text: "Sigmoid,Tanh,Tanh".
      return fmt::format("{}", fmt::join(attribute.strings(), ","));
    case onnx::AttributeProto::TENSOR:
      if (const auto value = ReadTensor(attribute.t()))
        return KnownValue{value->ints, value->reals};
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

int64_t OpsetOf(const Model::Impl& model, const ModelOperation& operation) {
  if (operation.opset > 0) return operation.opset;
  const std::string domain = operation.is_standard() ? "" : operation.node->domain();
  const auto found = model.identity.opsets.find(domain);
  return found == model.identity.opsets.end() ? 0 : found->second;
}

Operand PlannedOperand(const Model::Impl& model, ValueIndex index) {
  Operand operand;
  if (index == kNoValue) return operand;
  const ModelValue& value = model.value(index);
  operand.is_present = true;
  operand.dims = value.dims;
  operand.planned = {TensorTypeOf(value.elem_type), value.bytes.count()};
  const ConstantValue* constant = value.constant.get();
  if (constant != nullptr && (!constant->is_float() || constant->size() == 1)) {
    operand.known = {constant->ints, constant->reals};
  }
  return operand;
}

}  // namespace

std::optional<ElementType> ElementTypeOf(int32_t onnx_type) {
  switch (onnx_type) {
    case onnx::TensorProto::FLOAT:
    case onnx::TensorProto::FLOAT16:
    case onnx::TensorProto::BFLOAT16:
    case onnx::TensorProto::DOUBLE:
      return ElementType::kFloat32;
    case onnx::TensorProto::INT32:
      return ElementType::kInt32;
    case onnx::TensorProto::INT64:
      return ElementType::kInt64;
    case onnx::TensorProto::BOOL:
      return ElementType::kBool;
    default:
      return std::nullopt;
  }
}

bool IsOtherFloat(int32_t onnx_type) {
  return IsFloatType(onnx_type) && onnx_type != onnx::TensorProto::FLOAT;
}

std::string FloatTypeName(int32_t onnx_type) {
  switch (onnx_type) {
    case onnx::TensorProto::FLOAT16:
      return "float16";
    case onnx::TensorProto::BFLOAT16:
      return "bfloat16";
    case onnx::TensorProto::DOUBLE:
      return "float64";
    default:
      return "float32";
  }
}

// Adds the user's description of an unknown operator's costs: see op_hint.h.
void AddHint(const Model::Impl& model, const ModelOperation& operation, OpSpec* spec) {
  const OpHint* hint = HintFor(model, *operation.node);
  if (hint == nullptr) return;
  if (hint->flops > 0) spec->attributes[std::string(kHintedFlops)] = hint->flops;
  if (!hint->has_reads) return;
  const auto list = [](const std::vector<size_t>& positions) {
    return std::vector<int64_t>(positions.begin(), positions.end());
  };
  spec->attributes[std::string(kHintedInputs)] = list(hint->read_inputs);
  spec->attributes[std::string(kHintedOutputs)] = list(hint->read_outputs);
}

OpSpec SpecOf(const Model::Impl& model, const ModelOperation& operation) {
  OpSpec spec;
  spec.name = operation.name;
  spec.type = operation.is_standard() ? operation.type()
                                      : operation.node->domain() + "." + operation.type();
  spec.opset = OpsetOf(model, operation);
  if (operation.schema != nullptr) {
    for (const auto& [name, attribute] : operation.schema->attributes()) {
      if (attribute.default_value.has_name() || attribute.default_value.has_type()) {
        if (auto value = ValueOf(attribute.default_value)) spec.attributes[name] = *value;
      }
    }
  }
  for (const onnx::AttributeProto& attribute : operation.node->attribute()) {
    if (auto value = ValueOf(attribute)) spec.attributes[attribute.name()] = *value;
  }
  if (IsDescribable(operation)) AddHint(model, operation, &spec);
  return spec;
}

OpSpec PlannedSpecOf(const Model::Impl& model, const ModelOperation& operation) {
  OpSpec spec = SpecOf(model, operation);
  for (const ValueIndex input : operation.inputs) {
    spec.inputs.push_back(PlannedOperand(model, input));
  }
  for (const ValueIndex output : operation.outputs) {
    spec.outputs.push_back(PlannedOperand(model, output));
  }
  const bool is_as_in_model = model.activation_type == ActivationType::kOfModel;
  if (is_as_in_model && spec.input(0).is_present) spec.saved_type = spec.input(0).model_type();
  return spec;
}

const onnx::AttributeProto* FindAttribute(const onnx::NodeProto& node, std::string_view name) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

int64_t IntAttribute(const onnx::NodeProto& node, std::string_view name, int64_t otherwise) {
  const onnx::AttributeProto* attribute = FindAttribute(node, name);
  return attribute == nullptr ? otherwise : attribute->i();
}

double FloatAttribute(const onnx::NodeProto& node, std::string_view name, double otherwise) {
  const onnx::AttributeProto* attribute = FindAttribute(node, name);
  return attribute == nullptr ? otherwise : static_cast<double>(attribute->f());
}

std::string StringAttribute(const onnx::NodeProto& node, std::string_view name,
                            std::string_view otherwise) {
  const onnx::AttributeProto* attribute = FindAttribute(node, name);
  return attribute == nullptr ? std::string(otherwise) : attribute->s();
}

std::vector<int64_t> IntsAttribute(const onnx::NodeProto& node, std::string_view name) {
  const onnx::AttributeProto* attribute = FindAttribute(node, name);
  if (attribute == nullptr) return {};
  return {attribute->ints().begin(), attribute->ints().end()};
}

}  // namespace ckplan
