#include "lib/files/model/operation_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "lib/files/model/hinted_types.h"
#include "lib/files/model/op_spec_of.h"
#include "lib/files/model/unknown_shapes.h"
#include "lib/problem/ops/contrib.h"
#include "lib/problem/ops/families.h"
#include "onnx/defs/schema.h"

namespace ckplan {

namespace {

using onnx::TensorProto;

std::string CountFault(std::string_view what, int count, int low, int high) {
  if (count < low) return fmt::format("{} {}; it must have at least {}", count, what, low);
  if (count > high) return fmt::format("{} {}; it may have at most {}", count, what, high);
  return "";
}

bool IsFloat(int32_t elem_type) {
  return elem_type == TensorProto::FLOAT || elem_type == TensorProto::DOUBLE ||
         elem_type == TensorProto::FLOAT16 || elem_type == TensorProto::BFLOAT16;
}

bool TakesFloats(const onnx::OpSchema::FormalParameter& parameter) {
  const auto& types = parameter.GetTypes();
  return types.empty() || std::any_of(types.begin(), types.end(), [](const auto& name) {
           const onnx::TypeProto& type = onnx::Utils::DataTypeUtils::ToTypeProto(name);
           return type.has_tensor_type() && IsFloat(type.tensor_type().elem_type());
         });
}

// Finds float inputs that must not be floats, such as the repeats of a Tile, because they would get
// a gradient. Other types are not checked against ONNX's lists, because exporters use newer types.
std::string FloatFault(const Model::Impl& model, const ModelOperation& operation) {
  const auto& parameters = operation.schema->inputs();
  for (size_t i = 0; i < operation.inputs.size() && !parameters.empty(); ++i) {
    if (operation.inputs[i] == kNoValue) continue;
    const onnx::TypeProto& type = model.value(operation.inputs[i]).type;
    if (!type.has_tensor_type() || !IsFloat(type.tensor_type().elem_type())) continue;
    if (TakesFloats(parameters[std::min(i, parameters.size() - 1)])) continue;
    return fmt::format("floats as input {}, which does not accept floats", i);
  }
  return "";
}

// Returns the float type of a tensor; UNDEFINED for others.
int32_t FloatTypeOf(const Model::Impl& model, ValueIndex index) {
  if (index == kNoValue) return TensorProto::UNDEFINED;
  const int32_t type = model.value(index).elem_type;
  return IsFloat(type) ? type : int32_t{TensorProto::UNDEFINED};
}

// Finds floats of two types for an operator that requires one, such as a product of float and
// float16, which no runtime supports. Integers and booleans are not compared, because they are
// enough to plan.
std::string MixedFloatFault(const Model::Impl& model, const ModelOperation& operation) {
  const onnx::OpSchema& schema = *operation.schema;
  const auto& parameters = schema.inputs();
  std::map<std::string, size_t> firsts;  // By type parameter of the schema: its first float input.
  for (size_t i = 0; i < operation.inputs.size() && !parameters.empty(); ++i) {
    const auto& parameter = parameters[std::min(i, parameters.size() - 1)];
    const int32_t type = FloatTypeOf(model, operation.inputs[i]);
    if (type == TensorProto::UNDEFINED || !parameter.GetIsHomogeneous()) continue;
    if (!schema.typeConstraintMap().contains(parameter.GetTypeStr())) continue;
    const size_t first = firsts.emplace(parameter.GetTypeStr(), i).first->second;
    if (FloatTypeOf(model, operation.inputs[first]) == type) continue;
    return fmt::format("inputs {} and {} must have the same type", first, i);
  }
  return "";
}

// Finds an omitted required input, because some ONNX rules read its type without checking.
std::string AbsentInputFault(const ModelOperation& operation) {
  const auto& parameters = operation.schema->inputs();
  for (size_t i = 0; i < std::min(operation.inputs.size(), parameters.size()); ++i) {
    if (operation.inputs[i] != kNoValue) continue;
    if (parameters[i].GetOption() == onnx::OpSchema::Single) {
      return fmt::format("no input {}, which is required", i);
    }
  }
  return "";
}

// Only numbers and booleans with fully known shapes can be checked.
bool IsCheckable(const Model::Impl& model, ValueIndex index) {
  if (index == kNoValue) return true;
  const ModelValue& value = model.value(index);
  return value.has_shape && value.elem_type != TensorProto::STRING;
}

bool AreChecked(const Model::Impl& model, const std::vector<ValueIndex>& values) {
  return std::all_of(values.begin(), values.end(),
                     [&](ValueIndex index) { return IsCheckable(model, index); });
}

// Integers that no backend stores are checked as int64, because only their sizes matter here.
void SetCheckedTypes(const Model::Impl& model, const std::vector<ValueIndex>& values,
                     std::vector<Operand>* operands) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == kNoValue) continue;
    (*operands)[i].type =
        ElementTypeOf(model.value(values[i]).elem_type).value_or(ElementType::kInt64);
  }
}

std::string FaultOf(const Result<Done>& judged) {
  const bool is_invalid = !judged.ok() && judged.error().code == ErrorCode::kInvalidInput;
  if (!is_invalid) return "";
  // Messages of lib/problem/ops begin with the operator and the node, which the loader adds itself.
  const std::string& message = judged.error().message;
  const size_t begin = message.find("\": ");
  return begin == std::string::npos ? message : message.substr(begin + 3);
}

// Checks the attributes against the schema, because some ONNX rules read an attribute without
// checking that it exists and has the right type. Old files have attributes without a type.
std::string SchemaFault(const ModelOperation& operation) {
  using onnx::AttributeProto;
  if (operation.schema == nullptr) return "";
  for (const auto& [name, described] : operation.schema->attributes()) {
    const AttributeProto* attribute = FindAttribute(*operation.node, name);
    if (attribute == nullptr) {
      if (described.required) return fmt::format("it lacks the required attribute {}", name);
      continue;
    }
    if (attribute->type() == AttributeProto::UNDEFINED || attribute->type() == described.type) {
      continue;
    }
    return fmt::format("attribute {} has type {}; it must be {}", name,
                       AttributeProto::AttributeType_Name(attribute->type()),
                       AttributeProto::AttributeType_Name(described.type));
  }
  return "";
}

}  // namespace

std::string OperandFault(const Model::Impl& model, const ModelOperation& operation) {
  if (operation.schema == nullptr) return "";
  const onnx::NodeProto& node = *operation.node;
  const onnx::OpSchema& schema = *operation.schema;
  for (const std::string& fault :
       {CountFault("inputs", node.input_size(), schema.min_input(), schema.max_input()),
        CountFault("outputs", node.output_size(), schema.min_output(), schema.max_output()),
        AbsentInputFault(operation), FloatFault(model, operation)}) {
    if (!fault.empty()) return fault;
  }
  if (node.op_type() != "Split" || !IsStandard(node)) return "";
  const int64_t asked = IntAttribute(node, "num_outputs", node.output_size());
  if (asked <= node.output_size()) return "";
  return fmt::format("num_outputs {}, but only {} outputs", asked, node.output_size());
}

std::string AttributeFault(const Model::Impl& model, const ModelOperation& operation) {
  std::string fault = SchemaFault(operation);
  if (fault.empty() && operation.schema != nullptr) fault = MixedFloatFault(model, operation);
  if (!fault.empty() || !operation.is_standard()) return fault;
  OpSpec spec = SpecOf(model, operation);
  for (const ValueIndex index : operation.inputs) {
    Operand operand;
    if (index != kNoValue && model.value(index).has_shape) {
      operand.is_present = true;
      operand.dims = model.value(index).dims;
    }
    spec.inputs.push_back(std::move(operand));
  }
  return FaultOf(ValidateAttributes(spec));
}

std::string ContribFault(const Model::Impl& model, const ModelOperation& operation) {
  const bool is_described = GivenHintFor(model, *operation.node) != nullptr;
  if (operation.is_standard() || is_described || !HasKnownInputs(model, operation)) return "";
  return FaultOf(ValidateContrib(PlannedSpecOf(model, operation)));
}

std::string ShapeFault(const Model::Impl& model, const ModelOperation& operation) {
  constexpr int64_t kFirstBroadcastingOpset = 7;
  if (!operation.is_standard() || FindFamilyRow(operation.type()) == nullptr) return "";
  if (!AreChecked(model, operation.inputs) || !AreChecked(model, operation.outputs)) return "";
  OpSpec spec = PlannedSpecOf(model, operation);
  if (spec.opset < kFirstBroadcastingOpset) return "";
  SetCheckedTypes(model, operation.inputs, &spec.inputs);
  SetCheckedTypes(model, operation.outputs, &spec.outputs);
  const std::string fault = FaultOf(ValidateOp(spec));
  if (fault.empty()) return "";
  // Exporters add boolean masks to scores, which is enough to plan; ckexec refuses to run it.
  for (Operand& input : spec.inputs) {
    if (input.type == ElementType::kBool) input.type = spec.input(0).type;
  }
  return FaultOf(ValidateOp(spec)).empty() ? "" : fault;
}

}  // namespace ckplan
