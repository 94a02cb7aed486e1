#include "lib/files/model/hinted_types.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "lib/files/model/infer_types.h"

namespace ckplan {

namespace {

using onnx::TensorProto;

// Their rows in lib/problem/ops/op_table.def say what they cost.
constexpr std::string_view kOwnHints[] = {
    "ai.onnx.ml::Imputer=like:0",
    "ai.onnx.ml::Normalizer=float32[0.*,0.-1]",
    "ai.onnx.ml::Scaler=float32[0.*,0.-1]",
    "ai.onnx.preview::FlexAttention=[0.0,0.1,0.2,2.-1]",
    "com.microsoft::DynamicQuantizeMatMul=[0.*,1.-1]",
    "com.microsoft::MatMulBnb4=[0.*,@N]",
    "com.microsoft::MatMulFpQ4=[0.*,1.-1]",
    "com.microsoft::MatMulIntegerToFloat=float32[0.*,1.-1]",
    "com.microsoft::MatMulNBits=[0.*,@N]",
};

const std::vector<OpHint>& OwnHints() {
  static const std::vector<OpHint> kHints = [] {
    std::vector<OpHint> hints;
    for (const std::string_view text : kOwnHints) hints.push_back(*ParseOpHint(text));
    return hints;
  }();
  return kHints;
}

const OpHint* FindHint(const std::vector<OpHint>& hints, const onnx::NodeProto& node) {
  const auto found = std::find_if(hints.begin(), hints.end(), [&](const OpHint& hint) {
    return hint.type == node.op_type() && PlainDomain(hint.domain) == PlainDomain(node.domain());
  });
  return found == hints.end() ? nullptr : &*found;
}

std::optional<int32_t> TypeOfName(const std::string& name) {
  static const std::map<std::string, int32_t> kTypes = {
      {"float16", TensorProto::FLOAT16}, {"bfloat16", TensorProto::BFLOAT16},
      {"float32", TensorProto::FLOAT},   {"float64", TensorProto::DOUBLE},
      {"int8", TensorProto::INT8},       {"int16", TensorProto::INT16},
      {"int32", TensorProto::INT32},     {"int64", TensorProto::INT64},
      {"uint8", TensorProto::UINT8},     {"uint16", TensorProto::UINT16},
      {"uint32", TensorProto::UINT32},   {"uint64", TensorProto::UINT64},
      {"bool", TensorProto::BOOL}};
  const auto found = kTypes.find(name);
  return found == kTypes.end() ? std::nullopt : std::optional(found->second);
}

const ModelValue* InputAt(const Model::Impl& model, const ModelOperation& operation,
                          int64_t position) {
  const ValueIndex input = operation.input(static_cast<size_t>(position));
  return input == kNoValue || !model.value(input).has_shape ? nullptr : &model.value(input);
}

// Appends what a dimension of a rule stands for. Returns false if it is unknown.
bool AppendDim(const Model::Impl& model, const ModelOperation& operation, const OpHint::Dim& dim,
               Dims* dims) {
  if (!dim.attribute.empty()) {
    dims->push_back(IntAttribute(*operation.node, dim.attribute, -1));
    return dims->back() >= 0;
  }
  if (dim.input < 0) {
    dims->push_back(dim.size);
    return true;
  }
  const ModelValue* input = InputAt(model, operation, dim.input);
  if (input == nullptr) return false;
  const auto rank = static_cast<int64_t>(input->dims.size());
  if (dim.is_all_but_last) {
    if (rank == 0) return false;
    dims->insert(dims->end(), input->dims.begin(), input->dims.end() - 1);
    return true;
  }
  const int64_t axis = dim.axis < 0 ? dim.axis + rank : dim.axis;
  if (axis < 0 || axis >= rank) return false;
  dims->push_back(input->dims[static_cast<size_t>(axis)]);
  return true;
}

std::optional<onnx::TypeProto> TypeByRule(const Model::Impl& model, const ModelOperation& operation,
                                          const OpHint::OutputRule& rule) {
  if (rule.like >= 0) {
    const ModelValue* input = InputAt(model, operation, rule.like);
    return input == nullptr ? std::nullopt : std::optional(input->type);
  }
  std::optional<int32_t> type = TypeOfName(rule.type);
  if (!type) {
    const ModelValue* first = InputAt(model, operation, 0);
    if (first == nullptr) return std::nullopt;
    type = first->elem_type;
  }
  Dims dims;
  for (const OpHint::Dim& dim : rule.dims) {
    if (!AppendDim(model, operation, dim, &dims)) return std::nullopt;
  }
  return TensorOfType(*type, dims);
}

}  // namespace

bool HasOwnHint(const onnx::NodeProto& node) {
  return !IsStandard(node) && FindHint(OwnHints(), node) != nullptr;
}

const OpHint* HintFor(const Model::Impl& model, const onnx::NodeProto& node) {
  const OpHint* given = FindHint(model.op_hints, node);
  return given != nullptr ? given : FindHint(OwnHints(), node);
}

std::vector<onnx::TypeProto> HintedTypes(const Model::Impl& model,
                                         const ModelOperation& operation) {
  std::vector<onnx::TypeProto> types(operation.outputs.size());
  const OpHint* hint = HintFor(model, *operation.node);
  if (hint == nullptr) return types;
  for (size_t i = 0; i < types.size(); ++i) {
    const size_t rule = std::min(i, hint->outputs.size() - 1);
    if (auto type = TypeByRule(model, operation, hint->outputs[rule])) types[i] = *type;
  }
  return types;
}

}  // namespace ckplan
