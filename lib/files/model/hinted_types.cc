#include "lib/files/model/hinted_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

#include "lib/base/text.h"
#include "lib/files/model/bind_dims.h"
#include "lib/files/model/infer_types.h"
#include "lib/files/model/model.h"
#include "onnx/defs/schema.h"

namespace ckplan {

namespace {

using onnx::TensorProto;

// lib/problem/ops/op_table.def has the costs of these operators.
constexpr std::string_view kBuiltInHints[] = {
    "ai.onnx.ml::Imputer=like:0",
    "ai.onnx.ml::Normalizer=float32[0.*,0.-1]",
    "ai.onnx.ml::Scaler=float32[0.*,0.-1]",
    "ai.onnx.preview::FlexAttention=[0.0,0.1,0.2,2.-1]",
    "com.microsoft::DynamicQuantizeMatMul=[0.*,1.-1]",
    "com.microsoft::MatMulBnb4=[0.*,@N]",
    "com.microsoft::MatMulFpQ4=[0.*,2{1}]",
    "com.microsoft::MatMulIntegerToFloat=float32[0.*,1.-1]",
    "com.microsoft::MatMulNBits=[0.*,@N]",
};

constexpr FloatTwin kTwins[] = {
    {"DynamicQuantizeLSTM", "LSTM", {0, 1, 2}},
    {"NhwcMaxPool", "MaxPool", {0, -1, -1}},
    {"QGemm", "Gemm", {0, 3, -1}},
    {"QLinearAdd", "Add", {0, 3, -1}},
    {"QLinearAveragePool", "AveragePool", {0, -1, -1}},
    {"QLinearConcat", "Concat", {2, -1, -1}, 3},
    {"QLinearConv", "Conv", {0, 3, -1}},
    {"QLinearGlobalAveragePool", "GlobalAveragePool", {0, -1, -1}},
    {"QLinearLeakyRelu", "LeakyRelu", {0, -1, -1}},
    {"QLinearMul", "Mul", {0, 3, -1}},
    {"QLinearReduceMean", "ReduceMean", {0, -1, -1}},
    {"QLinearSigmoid", "Sigmoid", {0, -1, -1}},
    {"QLinearSoftmax", "Softmax", {0, -1, -1}},
    {"QLinearWhere", "Where", {0, 1, 4}},
};

const std::vector<OpHint>& BuiltInHints() {
  static const std::vector<OpHint> kHints = [] {
    std::vector<OpHint> hints;
    for (const std::string_view text : kBuiltInHints) hints.push_back(*ParseOpHint(text));
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

// Appends the size of a dimension in a rule. Returns false if it is unknown.
bool AppendDim(const Model::Impl& model, const ModelOperation& operation, const OpHint::Dim& dim,
               Dims* dims) {
  if (!dim.attribute.empty()) {
    const onnx::AttributeProto* attribute = FindAttribute(*operation.node, dim.attribute);
    if (attribute == nullptr || attribute->type() != onnx::AttributeProto::INT) return false;
    dims->push_back(attribute->i());
    return dims->back() >= 0;
  }
  if (dim.input < 0) {
    dims->push_back(dim.size);
    return true;
  }
  const ModelValue* input = InputAt(model, operation, dim.input);
  if (input == nullptr) return false;
  if (dim.is_content) {
    const ConstantValue* known = input->constant.get();
    const auto at = static_cast<size_t>(dim.axis);
    if (known == nullptr || known->is_float() || at >= known->ints.size()) return false;
    dims->push_back(known->ints[at]);
    return dims->back() >= 0;
  }
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

// The rules for integer products cover only products with one matrix.
bool IsBatchedProduct(const Model::Impl& model, const ModelOperation& operation,
                      const OpHint& hint) {
  const bool is_product =
      &hint == FindHint(BuiltInHints(), *operation.node) &&
      (hint.type == "DynamicQuantizeMatMul" || hint.type == "MatMulIntegerToFloat");
  const ModelValue* const weight = is_product ? InputAt(model, operation, 1) : nullptr;
  return weight != nullptr && weight->dims.size() != 2;
}

// Returns "acme::Norm".
std::string NameOf(const OpHint& hint) {
  return hint.domain.empty() ? hint.type : fmt::format("{}::{}", hint.domain, hint.type);
}

// Returns the nodes of the main graph, its branches and bodies, and of functions.
std::vector<const onnx::NodeProto*> AllNodes(const onnx::ModelProto& proto) {
  std::vector<const onnx::NodeProto*> nodes;
  for (const onnx::NodeProto& node : proto.graph().node()) nodes.push_back(&node);
  for (const onnx::FunctionProto& function : proto.functions()) {
    for (const onnx::NodeProto& node : function.node()) nodes.push_back(&node);
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const onnx::AttributeProto& attribute : nodes[i]->attribute()) {
      for (const onnx::NodeProto& node : attribute.g().node()) nodes.push_back(&node);
      for (const onnx::GraphProto& graph : attribute.graphs()) {
        for (const onnx::NodeProto& node : graph.node()) nodes.push_back(&node);
      }
    }
  }
  return nodes;
}

bool Describes(const OpHint& hint, const onnx::NodeProto& node) {
  return hint.type == node.op_type() && PlainDomain(hint.domain) == PlainDomain(node.domain());
}

// True if ONNX's main domain, or a function of the model, defines nodes of this type, so that they
// need no description.
bool IsDefined(const Model::Impl& model, const OpHint& hint) {
  const auto& functions = model.proto->functions();
  const bool is_standard = PlainDomain(hint.domain).empty();
  return (is_standard && onnx::OpSchemaRegistry::Schema(hint.type) != nullptr) ||
         std::any_of(functions.begin(), functions.end(), [&](const onnx::FunctionProto& function) {
           return function.name() == hint.type &&
                  PlainDomain(function.domain()) == PlainDomain(hint.domain);
         });
}

Result<Done> CheckIsUsed(const Model::Impl& model, const OpHint& hint,
                         const std::vector<const onnx::NodeProto*>& nodes,
                         const std::string& file) {
  const bool is_used = std::any_of(
      model.operations.begin(), model.operations.end(), [&](const ModelOperation& operation) {
        return IsDescribable(operation) && Describes(hint, *operation.node);
      });
  if (is_used) return Done{};
  const std::string name = NameOf(hint);
  const bool is_there = std::any_of(nodes.begin(), nodes.end(), [&](const onnx::NodeProto* node) {
    return Describes(hint, *node);
  });
  if (is_there && !IsDefined(model, hint)) return Done{};  // The step doesn't include it.
  if (is_there) {
    return MakeError(
        ErrorCode::kUsage,
        fmt::format("{}: --op-shape {}: ckplan already knows this operator; omit the description",
                    file, ShortName(name)));
  }
  std::set<std::string> known;
  for (const onnx::NodeProto* node : nodes) {
    if (!IsStandard(*node)) known.insert(fmt::format("{}::{}", node->domain(), node->op_type()));
  }
  const std::vector<std::string_view> names(known.begin(), known.end());
  return MakeError(ErrorCode::kUsage,
                   fmt::format("{}: --op-shape {}: the model has no such operator{}", file,
                               ShortName(name), DidYouMean(name, names)));
}

Result<Done> CheckReads(const Model::Impl& model, const OpHint& hint, const std::string& file) {
  size_t inputs = 0;
  size_t outputs = 0;
  for (const ModelOperation& operation : model.operations) {
    if (!IsDescribable(operation) || !Describes(hint, *operation.node)) continue;
    inputs = std::max(inputs, operation.inputs.size());
    outputs = std::max(outputs, operation.outputs.size());
  }
  if (outputs == 0) return Done{};
  for (const auto& [positions, count, letter, what] :
       {std::tuple(&hint.read_inputs, inputs, 'x', "input"),
        std::tuple(&hint.read_outputs, outputs, 'y', "output")}) {
    if (positions->empty() || positions->back() < count) continue;
    return MakeError(ErrorCode::kInvalidInput,
                     fmt::format("{}: --op-shape {}: reads={}{}, but a node of this type has {} "
                                 "{}{} at most",
                                 file, ShortName(NameOf(hint)), letter, positions->back(), count,
                                 what, count == 1 ? "" : "s"));
  }
  return Done{};
}

}  // namespace

bool IsDescribable(const ModelOperation& operation) {
  return operation.schema == nullptr || !operation.is_standard();
}

const FloatTwin* TwinOf(const onnx::NodeProto& node) {
  const auto* const found =
      std::find_if(std::begin(kTwins), std::end(kTwins),
                   [&](const FloatTwin& row) { return row.type == node.op_type(); });
  return node.domain() != "com.microsoft" || found == std::end(kTwins) ? nullptr : found;
}

bool HasBuiltInHint(const onnx::NodeProto& node) {
  if (IsStandard(node)) return false;
  return FindHint(BuiltInHints(), node) != nullptr || TwinOf(node) != nullptr;
}

const OpHint* GivenHintFor(const Model::Impl& model, const onnx::NodeProto& node) {
  return FindHint(model.op_hints, node);
}

const OpHint* HintFor(const Model::Impl& model, const onnx::NodeProto& node) {
  const OpHint* given = GivenHintFor(model, node);
  return given != nullptr ? given : FindHint(BuiltInHints(), node);
}

std::string OptionalName(const OpHint& hint) { return NameOf(hint) + "="; }

Result<Done> CheckHints(const Model::Impl& model, const std::set<std::string>& optional,
                        const std::string& file) {
  if (model.op_hints.empty()) return Done{};
  const std::vector<const onnx::NodeProto*> nodes = AllNodes(*model.proto);
  for (const OpHint& hint : model.op_hints) {
    CKPLAN_RETURN_IF_ERROR(CheckReads(model, hint, file));
    if (!optional.contains(OptionalName(hint))) {
      CKPLAN_RETURN_IF_ERROR(CheckIsUsed(model, hint, nodes, file));
    }
  }
  return Done{};
}

std::vector<std::string> UsedOpShapes(const Model& model, const std::vector<std::string>& texts) {
  const std::vector<const onnx::NodeProto*> nodes = AllNodes(*model.impl().proto);
  std::vector<std::string> used;
  for (const std::string& text : texts) {
    const Result<OpHint> hint = ParseOpHint(text);
    const bool is_there =
        hint.ok() && std::any_of(nodes.begin(), nodes.end(), [&](const onnx::NodeProto* node) {
          return Describes(*hint, *node);
        });
    if (is_there) used.push_back(text);
  }
  return used;
}

std::vector<onnx::TypeProto> HintedTypes(const Model::Impl& model,
                                         const ModelOperation& operation) {
  std::vector<onnx::TypeProto> types(operation.outputs.size());
  const OpHint* hint = HintFor(model, *operation.node);
  if (hint == nullptr || IsBatchedProduct(model, operation, *hint)) return types;
  for (size_t i = 0; i < types.size(); ++i) {
    const size_t rule = std::min(i, hint->outputs.size() - 1);
    if (auto type = TypeByRule(model, operation, hint->outputs[rule])) types[i] = *type;
  }
  return types;
}

}  // namespace ckplan
