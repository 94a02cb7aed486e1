#include "lib/model/expand.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "lib/base/stop.h"
#include "lib/graph/tensor_graph.h"
#include "lib/model/expansion_size.h"
#include "lib/model/fold.h"
#include "lib/model/functions.h"
#include "lib/model/infer_types.h"
#include "lib/model/unknown_shapes.h"

namespace ckplan {

namespace {

using onnx::GraphProto;
using onnx::NodeProto;

using OpsetVersions = std::unordered_map<std::string, int>;
using DeclaredTypes = std::unordered_map<std::string, const onnx::TypeProto*>;
using Attributes = std::unordered_map<std::string, const onnx::AttributeProto*>;

constexpr int kDeepestNesting = 64;  // Branches and calls within each other; recursion ends here.
constexpr size_t kMaxOperations = 4'000'000;
constexpr size_t kMaxMadeBytes = size_t{1} << 28;  // Nodes that are copied to fill in attributes.
constexpr int64_t kMaxFoldedReals = 64;            // Larger float tensors are weights, never sizes.

// Where names are looked up: the main graph, a branch of an If within it, or a function's body.
struct Scope {
  const Scope* parent = nullptr;  // A branch sees the names around it; a function does not.
  std::string prefix;             // Begins the names that this scope makes.
  const OpsetVersions* opsets = nullptr;
  const Attributes* attributes = nullptr;  // Those of the call, in a function.
  const DeclaredTypes* declared = nullptr;
  int depth = 0;
  int32_t file_node = 0;
  std::unordered_map<std::string, ValueIndex> names;
};

template <typename Proto>
OpsetVersions ReadOpsets(const Proto& proto) {
  OpsetVersions versions;
  for (const auto& import : proto.opset_import()) {
    versions[PlainDomain(import.domain())] =
        static_cast<int>(std::clamp<int64_t>(import.version(), 0, std::numeric_limits<int>::max()));
  }
  return versions;
}

bool HoldsGraph(const NodeProto& node) {
  return std::any_of(node.attribute().begin(), node.attribute().end(), [](const auto& attribute) {
    return attribute.has_g() || attribute.graphs_size() > 0;
  });
}

// Fills in the attributes of the enclosing function's call; those that the call leaves out go.
void BindAttributes(NodeProto& node, const Attributes& attributes) {
  auto& own = *node.mutable_attribute();
  for (int i = own.size() - 1; i >= 0; --i) {
    onnx::AttributeProto& attribute = *own.Mutable(i);
    if (attribute.has_ref_attr_name() && !attribute.ref_attr_name().empty()) {
      const auto found = attributes.find(attribute.ref_attr_name());
      if (found == attributes.end()) {
        own.DeleteSubrange(i, 1);
        continue;
      }
      const std::string name = attribute.name();
      attribute = *found->second;
      attribute.set_name(name);
    }
    if (attribute.has_g()) {
      for (NodeProto& inner : *attribute.mutable_g()->mutable_node()) {
        BindAttributes(inner, attributes);
      }
    }
  }
}

bool NeedsBinding(const NodeProto& node) {
  return HoldsGraph(node) ||
         std::any_of(node.attribute().begin(), node.attribute().end(),
                     [](const auto& attribute) { return attribute.has_ref_attr_name(); });
}

class Expander {
 public:
  Expander(Model::Impl& model, const BoundDims& bound, const std::string& file)
      : model_(model), bound_(bound), file_(file), functions_(*model.proto) {}

  Result<Done> Run() {
    const onnx::ModelProto& proto = *model_.proto;
    CKPLAN_RETURN_IF_ERROR(CheckExpansion(proto, functions_, file_));
    const OpsetVersions opsets = ReadOpsets(proto);
    const DeclaredTypes declared = ReadDeclared(proto.graph());
    Scope scope;
    const auto nodes = static_cast<size_t>(proto.graph().node_size());
    scope.names.reserve(nodes);
    used_value_names_.reserve(nodes);
    used_node_names_.reserve(nodes);
    model_.operations.reserve(nodes);
    model_.values.reserve(nodes);
    scope.opsets = &opsets;
    scope.declared = &declared;
    AddInputs(scope);
    AddInitializers(proto.graph(), scope);
    for (int i = 0; i < proto.graph().node_size(); ++i) {
      scope.file_node = i;
      Expand(proto.graph().node(i), scope);
      if (is_too_large_) break;
    }
    for (const auto& output : proto.graph().output()) {
      const auto value = Find(output.name(), scope);
      if (value.has_value() && *value != kNoValue) {
        model_.graph_outputs.push_back(*value);
      } else {
        faults_.push_back(
            fmt::format("nothing produces the graph's output \"{}\"", ShortName(output.name())));
      }
    }
    return Report();
  }

 private:
  // ---- Values ---------------------------------------------------------------------------------

  static DeclaredTypes ReadDeclared(const GraphProto& graph) {
    DeclaredTypes declared;
    for (const auto& info : graph.value_info()) declared[info.name()] = &info.type();
    for (const auto& info : graph.output()) declared[info.name()] = &info.type();
    return declared;
  }

  static std::string UniqueName(std::string name, std::unordered_map<std::string, int>& used) {
    const auto [entry, is_new] = used.emplace(name, 1);
    if (is_new) return name;
    int& last = entry->second;  // Stays where it is when the table grows.
    for (;;) {
      std::string candidate = fmt::format("{}#{}", name, ++last);
      if (used.emplace(candidate, 1).second) return candidate;
    }
  }

  ValueIndex AddValue(const std::string& name, Scope& scope, Value::Source source) {
    Value value;
    value.name = UniqueName(scope.prefix + name, used_value_names_);
    value.source = source;
    model_.values.push_back(std::move(value));
    const auto index = static_cast<ValueIndex>(model_.values.size() - 1);
    if (!scope.names.emplace(name, index).second) {
      faults_.push_back(fmt::format("\"{}\" is produced twice", ShortName(name)));
    }
    return index;
  }

  // Takes over a type; sizes that overflow are faults.
  void SetType(Value& value, const onnx::TypeProto& type) {
    value.type = type;
    if (!IsFullTensor(type)) return;
    value.elem_type = type.tensor_type().elem_type();
    value.dims.clear();
    for (const auto& dim : type.tensor_type().shape().dim()) value.dims.push_back(dim.dim_value());
    if (value.elem_type == onnx::TensorProto::STRING) return;
    const auto bytes = TensorBytes(value.elem_type, value.dims);
    if (!bytes.has_value() || *bytes > kMaxTotalBytes.count()) {
      faults_.push_back(
          fmt::format("the size of \"{}\", {}, is beyond any machine; use smaller "
                      "dimensions",
                      ShortName(value.name), TypeText(value.elem_type, value.dims)));
      return;
    }
    value.bytes = Bytes(*bytes);
    value.has_shape = true;
  }

  void AddInputs(Scope& scope) {
    for (const BoundInput& input : bound_.inputs) {
      const ValueIndex index = AddValue(input.input->name(), scope, Value::Source::kGraphInput);
      SetType(model_.value(index), input.type);
      model_.graph_inputs.push_back(index);
    }
  }

  void AddInitializer(const std::string& name, const onnx::TensorProto& tensor, const auto& dims,
                      Scope& scope) {
    const ValueIndex index = AddValue(name, scope, Value::Source::kInitializer);
    Value& value = model_.value(index);
    onnx::TypeProto type;
    type.mutable_tensor_type()->set_elem_type(tensor.data_type());
    auto* shape = type.mutable_tensor_type()->mutable_shape();
    for (const int64_t dim : dims) shape->add_dim()->set_dim_value(dim);
    SetType(value, type);
    value.initializer = &tensor;
    const auto count = ElementCount(value.dims);
    const bool may_be_size = !IsFloatType(value.elem_type) || count <= kMaxFoldedReals;
    if (!value.has_shape || !may_be_size) return;
    if (auto constant = ReadTensor(tensor); constant.has_value()) {
      value.constant = std::make_unique<ConstantValue>(std::move(*constant));
    }
  }

  void AddInitializers(const GraphProto& graph, Scope& scope) {
    for (const auto& tensor : graph.initializer()) {
      AddInitializer(tensor.name(), tensor, tensor.dims(), scope);
    }
    for (const auto& sparse : graph.sparse_initializer()) {
      AddInitializer(sparse.values().name(), sparse.values(), sparse.dims(), scope);
    }
  }

  static std::optional<ValueIndex> Find(const std::string& name, const Scope& scope) {
    for (const Scope* at = &scope; at != nullptr; at = at->parent) {
      const auto found = at->names.find(name);
      if (found != at->names.end()) return found->second;
    }
    return std::nullopt;
  }

  // ---- Nodes ----------------------------------------------------------------------------------

  void Expand(const NodeProto& source, Scope& scope) {
    PollStop();
    is_too_large_ = is_too_large_ || scope.depth > kDeepestNesting ||
                    model_.operations.size() > kMaxOperations || made_bytes_ > kMaxMadeBytes;
    if (is_too_large_) return;
    const NodeProto* node = &source;
    if (scope.attributes != nullptr && NeedsBinding(source)) {
      model_.made_nodes.push_back(source);
      BindAttributes(model_.made_nodes.back(), *scope.attributes);
      made_bytes_ += model_.made_nodes.back().ByteSizeLong();
      node = &model_.made_nodes.back();
    }
    const onnx::FunctionProto* function = functions_.Find(*node);
    if (function != nullptr) return ExpandCall(*node, *function, scope);
    if (HoldsGraph(*node)) return ExpandControlFlow(*node, scope);
    AddOperation(*node, scope);
  }

  std::string NodeName(const NodeProto& node, const Scope& scope) {
    std::string name = node.name();
    if (name.empty()) {
      name = node.op_type() + ":" + (node.output_size() > 0 ? node.output(0) : std::string());
    }
    return UniqueName(scope.prefix + name, used_node_names_);
  }

  // Resolves the inputs of a node; nothing, and a fault, if one is produced nowhere before it.
  std::optional<std::vector<ValueIndex>> ResolveInputs(const NodeProto& node, const Scope& scope) {
    std::vector<ValueIndex> inputs;
    for (const std::string& name : node.input()) {
      if (name.empty()) {
        inputs.push_back(kNoValue);
        continue;
      }
      const auto value = Find(name, scope);
      if (!value.has_value()) {
        faults_.push_back(
            fmt::format("node \"{}\" ({}) reads \"{}\", which nothing before it produces",
                        ShortName(node.name()), node.op_type(), ShortName(name)));
        return std::nullopt;
      }
      inputs.push_back(*value);
    }
    return inputs;
  }

  void AddUnknownOutputs(const NodeProto& node, Scope& scope) {
    for (const std::string& name : node.output()) {
      if (!name.empty()) AddValue(name, scope, Value::Source::kOperation);
    }
  }

  void ExpandCall(const NodeProto& node, const onnx::FunctionProto& function, Scope& scope) {
    const auto inputs = ResolveInputs(node, scope);
    if (!inputs.has_value()) return AddUnknownOutputs(node, scope);
    Attributes attributes;
    for (const auto& attribute : function.attribute_proto())
      attributes[attribute.name()] = &attribute;
    for (const auto& attribute : node.attribute()) attributes[attribute.name()] = &attribute;
    OpsetVersions opsets = *scope.opsets;
    for (const auto& [domain, version] : ReadOpsets(function)) opsets[domain] = version;
    DeclaredTypes declared;
    for (const auto& info : function.value_info()) declared[info.name()] = &info.type();
    Scope body{nullptr,         NodeName(node, scope) + "/",
               &opsets,         &attributes,
               &declared,       scope.depth + 1,
               scope.file_node, {}};
    for (int i = 0; i < function.input_size(); ++i) {
      const auto at = static_cast<size_t>(i);
      body.names[function.input(i)] = at < inputs->size() ? (*inputs)[at] : kNoValue;
    }
    for (const NodeProto& inner : function.node()) Expand(inner, body);
    BindOutputs(node, function.output(), body, scope);
  }

  // The values that the inner scope calls `inner_names` get the node's output names around it.
  template <typename Names>
  void BindOutputs(const NodeProto& node, const Names& inner_names, const Scope& inner,
                   Scope& scope) {
    for (int i = 0; i < node.output_size(); ++i) {
      if (node.output(i).empty()) continue;
      const auto value = i < inner_names.size() ? Find(inner_names.Get(i), inner) : std::nullopt;
      if (!value.has_value() || *value == kNoValue) {
        if (!is_too_large_) {
          faults_.push_back(fmt::format("nothing in \"{}\" ({}) produces its output \"{}\"",
                                        ShortName(node.name()), node.op_type(),
                                        ShortName(node.output(i))));
        }
        AddValue(node.output(i), scope, Value::Source::kOperation);
      } else if (!scope.names.emplace(node.output(i), *value).second) {
        faults_.push_back(fmt::format("\"{}\" is produced twice", ShortName(node.output(i))));
      }
    }
  }

  // An If whose condition is known becomes the branch that it takes; nothing else can be planned.
  void ExpandControlFlow(const NodeProto& node, Scope& scope) {
    const auto inputs = ResolveInputs(node, scope);
    if (node.op_type() == "If" && inputs.has_value() && inputs->size() == 1 &&
        (*inputs)[0] != kNoValue) {
      const ConstantValue* condition = model_.value((*inputs)[0]).constant.get();
      if (condition != nullptr && condition->ints.size() == 1) {
        const auto* branch =
            FindAttribute(node, condition->ints[0] != 0 ? "then_branch" : "else_branch");
        if (branch != nullptr) return ExpandBranch(node, branch->g(), scope);
      }
    }
    unsupported_.push_back(
        fmt::format("{} \"{}\"", node.op_type(), ShortName(NodeName(node, scope))));
    AddUnknownOutputs(node, scope);
  }

  void ExpandBranch(const NodeProto& node, const GraphProto& branch, Scope& scope) {
    const DeclaredTypes declared = ReadDeclared(branch);
    Scope inner{&scope,          NodeName(node, scope) + "/",
                scope.opsets,    nullptr,
                &declared,       scope.depth + 1,
                scope.file_node, {}};
    AddInitializers(branch, inner);
    for (const NodeProto& step : branch.node()) Expand(step, inner);
    const auto names = [&branch] {
      google::protobuf::RepeatedPtrField<std::string> list;
      for (const auto& output : branch.output()) *list.Add() = output.name();
      return list;
    }();
    BindOutputs(node, names, inner, scope);
  }

  bool HasWrongOperands(const Operation& operation) {
    const std::string fault = OperandFault(model_, operation);
    if (fault.empty()) return false;
    faults_.push_back(fmt::format("node \"{}\" ({}) has {}", ShortName(operation.node->name()),
                                  operation.type(), fault));
    return true;
  }

  void AddOperation(const NodeProto& node, Scope& scope) {
    auto inputs = ResolveInputs(node, scope);
    if (!inputs.has_value()) return AddUnknownOutputs(node, scope);
    Operation operation;
    operation.name = NodeName(node, scope);
    operation.node = &node;
    operation.file_node = scope.file_node;
    operation.inputs = std::move(*inputs);
    const std::string& domain = PlainDomain(node.domain());
    const auto version = scope.opsets->find(domain);
    if (version != scope.opsets->end()) {
      operation.schema = onnx::OpSchemaRegistry::Schema(node.op_type(), version->second, domain);
    }
    if (HasWrongOperands(operation)) return AddUnknownOutputs(node, scope);
    const auto index = static_cast<int32_t>(model_.operations.size());
    for (const std::string& name : node.output()) {
      if (name.empty()) {
        operation.outputs.push_back(kNoValue);
        continue;
      }
      operation.outputs.push_back(AddValue(name, scope, Value::Source::kOperation));
      model_.value(operation.outputs.back()).producer = index;
    }
    model_.operations.push_back(std::move(operation));
    SetTypes(model_.operations.back(), scope);
    FoldOperation(model_.operations.back());
  }

  // ---- Types and contents ---------------------------------------------------------------------

  void SetTypes(const Operation& operation, const Scope& scope) {
    InferredTypes inferred = InferTypes(model_, operation);
    for (size_t i = 0; i < operation.outputs.size(); ++i) {
      if (operation.outputs[i] == kNoValue) continue;
      onnx::TypeProto& type = inferred.outputs[i];
      if (!IsFullTensor(type)) {
        // What the file declares is often wrong, so it is believed only where nothing else is
        // known.
        const auto declared = scope.declared->find(operation.node->output(static_cast<int>(i)));
        if (declared != scope.declared->end()) {
          onnx::TypeProto filled = *declared->second;
          if (FillDims(filled, bound_.dims) && IsFullTensor(filled)) type = std::move(filled);
        }
      }
      SetType(model_.value(operation.outputs[i]), type);
    }
    if (!inferred.fault.empty()) {
      onnx_faults_[static_cast<int32_t>(model_.operations.size()) - 1] = std::move(inferred.fault);
    }
  }

  void FoldOperation(const Operation& operation) {
    if (!operation.is_standard()) return;
    std::vector<FoldInput> inputs;
    for (const ValueIndex input : operation.inputs) {
      FoldInput known;
      if (input != kNoValue) {
        const Value& value = model_.value(input);
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
      Value& value = model_.value(operation.outputs[i]);
      ConstantValue& constant = (*folded)[i];
      if (value.has_shape &&
          (value.dims != constant.dims || value.elem_type != constant.elem_type)) {
        continue;  // ONNX's own rule is the judge of shapes.
      }
      if (!value.has_shape) {
        onnx::TypeProto type;
        type.mutable_tensor_type()->set_elem_type(constant.elem_type);
        auto* shape = type.mutable_tensor_type()->mutable_shape();
        for (const int64_t dim : constant.dims) shape->add_dim()->set_dim_value(dim);
        SetType(value, type);
      }
      value.constant = std::make_unique<ConstantValue>(std::move(constant));
    }
  }

  // ---- Faults ---------------------------------------------------------------------------------

  Result<Done> Report() {
    if (is_too_large_) {
      return MakeError(ErrorCode::kUnsupported,
                       fmt::format("{}: its branches and calls are nested more than {} levels "
                                   "deep, make more than {} operations, or more than {} MiB of "
                                   "attributes; export it without functions",
                                   file_, kDeepestNesting, kMaxOperations, kMaxMadeBytes >> 20));
    }
    if (!faults_.empty()) {
      return InvalidModel(file_, "the model is damaged or contradicts itself", faults_);
    }
    if (!unsupported_.empty()) {
      return MakeError(
          ErrorCode::kUnsupported,
          fmt::format("{}: control flow cannot be planned: {}; only an If whose condition is "
                      "constant can; export the model without data-dependent branches and loops",
                      file_, ShortList(unsupported_)));
    }
    return CheckShapesKnown(model_, onnx_faults_, file_);
  }

  Model::Impl& model_;
  const BoundDims& bound_;
  const std::string& file_;
  const ModelFunctions functions_;
  std::unordered_map<std::string, int> used_value_names_;
  std::unordered_map<std::string, int> used_node_names_;
  std::unordered_map<int32_t, std::string> onnx_faults_;  // By operation.
  std::vector<std::string> faults_;
  std::vector<std::string> unsupported_;
  size_t made_bytes_ = 0;
  bool is_too_large_ = false;
};

}  // namespace

Result<Done> ExpandGraph(Model::Impl& model, const BoundDims& bound, const std::string& file) {
  return Expander(model, bound, file).Run();
}

}  // namespace ckplan
