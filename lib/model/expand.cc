#include "lib/model/expand.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "lib/base/stop.h"
#include "lib/graph/tensor_graph.h"
#include "lib/model/declared_types.h"
#include "lib/model/expansion_size.h"
#include "lib/model/fold.h"
#include "lib/model/follow_batch.h"
#include "lib/model/functions.h"
#include "lib/model/infer_types.h"
#include "lib/model/scope.h"
#include "lib/model/sequences.h"
#include "lib/model/unknown_shapes.h"

namespace ckplan {

namespace {

using onnx::GraphProto;
using onnx::NodeProto;

constexpr int kDeepestNesting = 64;  // Branches and calls within each other; deeper recursion is
                                     // refused.
constexpr size_t kMaxOperations = 4'000'000;
constexpr size_t kMaxMadeBytes = size_t{1} << 28;  // Nodes that are copied to fill in attributes.
// The approximate memory of the parts of sequences.
constexpr int64_t kMaxPartBytes = int64_t{1} << 28;
constexpr int64_t kMaxFoldedReals = 64;  // Larger float tensors are weights, never sizes.

struct Sequence {
  std::vector<ValueIndex> parts;
  std::optional<int64_t> lost_axis;  // Its parts have one element on this axis and drop it.
};

class Expander {
 public:
  Expander(Model::Impl& model, const BoundDims& bound, const std::string& file,
           BatchFollower* follower)
      : model_(model),
        bound_(bound),
        file_(file),
        follower_(follower),
        functions_(*model.proto),
        types_(bound),
        has_other_shapes_(HasOtherShapes(bound)) {}

  Result<Done> Run() {
    const onnx::ModelProto& proto = *model_.proto;
    CKPLAN_RETURN_IF_ERROR(CheckExpansion(proto, functions_, file_));
    const OpsetVersions opsets = OpsetsOf(proto);
    const DeclaredTypes declared = DeclaredIn(proto.graph());
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
        if (sequences_.contains(*value)) {
          sequence_readers_.push_back(fmt::format("output \"{}\"", ShortName(output.name())));
        }
      } else {
        faults_.push_back(
            fmt::format("nothing produces the graph's output \"{}\"", ShortName(output.name())));
      }
    }
    return Report();
  }

 private:
  // ---- Values ---------------------------------------------------------------------------------

  ValueIndex AddValue(const std::string& name, Scope& scope, ModelValue::Source source) {
    ModelValue value;
    value.name = UniqueName(scope.prefix + name, used_value_names_);
    value.source = source;
    model_.values.push_back(std::move(value));
    const auto index = static_cast<ValueIndex>(model_.values.size() - 1);
    if (!scope.names.emplace(name, index).second) {
      faults_.push_back(fmt::format("\"{}\" is produced twice", ShortName(name)));
    }
    return index;
  }

  // A size that overflows is a fault.
  void SetType(ModelValue& value, const onnx::TypeProto& type) {
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
      const ValueIndex index =
          AddValue(input.input->name(), scope, ModelValue::Source::kGraphInput);
      SetType(model_.value(index), input.type);
      model_.graph_inputs.push_back(index);
    }
  }

  void AddInitializer(const std::string& name, const onnx::TensorProto& tensor, const auto& dims,
                      Scope& scope) {
    const ValueIndex index = AddValue(name, scope, ModelValue::Source::kInitializer);
    ModelValue& value = model_.value(index);
    const onnx::TypeProto type = TensorOfType(tensor.data_type(), Dims(dims.begin(), dims.end()));
    if (!IsFullTensor(type)) {
      faults_.push_back(fmt::format(
          "initializer \"{}\" has no element type, or a negative dimension", ShortName(name)));
    }
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

  // Resolves the inputs of a node. Returns nothing, and records a fault, if an input is not
  // produced before it.
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
      if (!name.empty()) AddValue(name, scope, ModelValue::Source::kOperation);
    }
  }

  void ExpandCall(const NodeProto& node, const onnx::FunctionProto& function, Scope& scope) {
    const auto inputs = ResolveInputs(node, scope);
    if (!inputs.has_value()) return AddUnknownOutputs(node, scope);
    CallAttributes attributes;
    for (const auto& attribute : function.attribute_proto())
      attributes[attribute.name()] = &attribute;
    for (const auto& attribute : node.attribute()) attributes[attribute.name()] = &attribute;
    OpsetVersions opsets = *scope.opsets;
    for (const auto& [domain, version] : OpsetsOf(function)) opsets[domain] = version;
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

  // Gives the values `inner_names` of the inner scope the node's output names in the outer one.
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
        AddValue(node.output(i), scope, ModelValue::Source::kOperation);
      } else if (!scope.names.emplace(node.output(i), *value).second) {
        faults_.push_back(fmt::format("\"{}\" is produced twice", ShortName(node.output(i))));
      } else {
        const onnx::TypeProto& type = model_.value(*value).type;
        types_.Compare(node.output(i), scope, node.op_type(), type, type);
      }
    }
  }

  // Replaces an If with a known condition by the branch taken; other control flow cannot be
  // planned.
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
    const DeclaredTypes declared = DeclaredIn(branch);
    Scope inner{&scope,          NodeName(node, scope) + "/",
                scope.opsets,    nullptr,
                &declared,       scope.depth + 1,
                scope.file_node, {}};
    AddInitializers(branch, inner);
    for (const NodeProto& step : branch.node()) Expand(step, inner);
    google::protobuf::RepeatedPtrField<std::string> names;
    for (const auto& output : branch.output()) *names.Add() = output.name();
    BindOutputs(node, names, inner, scope);
  }

  bool HasWrongOperands(const ModelOperation& operation) {
    const std::string fault = OperandFault(model_, operation);
    if (fault.empty()) return false;
    faults_.push_back(fmt::format("node \"{}\" ({}) has {}", ShortName(operation.node->name()),
                                  operation.type(), fault));
    return true;
  }

  void AddOperation(const NodeProto& node, Scope& scope) {
    auto inputs = ResolveInputs(node, scope);
    if (!inputs.has_value()) return AddUnknownOutputs(node, scope);
    if (AddSequenceSplit(node, *inputs, scope) || AddSequencePart(node, *inputs, scope)) return;
    std::string batch_fault;
    const NodeProto& followed = FollowBatch(node, &*inputs, &batch_fault, scope);
    ModelOperation operation = MakeOperation(followed, std::move(*inputs), scope);
    if (HasWrongOperands(operation)) return AddUnknownOutputs(node, scope);
    const bool reads_sequence =
        std::any_of(operation.inputs.begin(), operation.inputs.end(),
                    [this](ValueIndex input) { return sequences_.contains(input); });
    const ModelOperation& appended = AppendOperation(std::move(operation), scope);
    if (!batch_fault.empty()) AddMisfit(std::move(batch_fault));
    if (reads_sequence) {
      sequence_readers_.push_back(
          fmt::format("{} \"{}\"", appended.type(), ShortName(appended.name)));
    }
  }

  ModelOperation MakeOperation(const NodeProto& node, std::vector<ValueIndex> inputs,
                               const Scope& scope) {
    ModelOperation operation;
    operation.name = NodeName(node, scope);
    operation.node = &node;
    operation.schema = SchemaOf(node, scope);
    operation.file_node = scope.file_node;
    operation.inputs = std::move(inputs);
    return operation;
  }

  const ModelOperation& AppendOperation(ModelOperation operation, Scope& scope) {
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
    FoldOperation(model_.operations.back());
    return model_.operations.back();
  }

  // ---- The batch ------------------------------------------------------------------------------

  // Returns the node that takes the batch of its inputs: the file's own, or one with other
  // attributes. Operands that have to change are replaced among `inputs`.
  const NodeProto& FollowBatch(const NodeProto& node, std::vector<ValueIndex>* inputs,
                               std::string* fault, Scope& scope) {
    if (follower_ == nullptr) return node;
    FollowedNode followed = follower_->Follow(model_, node, *inputs, scope.prefix);
    *fault = std::move(followed.fault);
    Scope inner = MadeScope(scope);
    for (const FollowedNode::List& list : followed.lists) {
      const std::string what = fmt::format("batch{}", list.operand);
      (*inputs)[list.operand] = AppendMade(ConstantNode(node, what, list.numbers), {}, inner)[0];
    }
    for (const FollowedNode::List& list : followed.expanded) {
      const std::string what = fmt::format("batch{}", list.operand);
      const ValueIndex dims = AppendMade(ConstantNode(node, what, list.numbers), {}, inner)[0];
      (*inputs)[list.operand] = AppendMade(ExpandNode(node, static_cast<int>(list.operand), what),
                                           {(*inputs)[list.operand], dims}, inner)[0];
    }
    if (!followed.node) return node;
    model_.made_nodes.push_back(std::move(*followed.node));
    return model_.made_nodes.back();
  }

  // Records why the newest operation is a misfit. What is known last is the most precise.
  void AddMisfit(std::string fault) {
    const auto operation = static_cast<int32_t>(model_.operations.size()) - 1;
    shape_faults_.of_request.insert_or_assign(operation, std::move(fault));
  }

  // Lets the follower find the constants that keep operations from having shapes.
  void TakeConstantsOfBatch() {
    for (const auto* faults : {&shape_faults_.of_onnx, &shape_faults_.of_request}) {
      for (const auto& [operation, fault] : *faults) {
        follower_->TakeConstantsOf(model_, model_.operations[static_cast<size_t>(operation)]);
      }
    }
  }

  // Returns the type of an output that ONNX does not know, or does not know wholly.
  onnx::TypeProto WithBatch(onnx::TypeProto type, const ModelOperation& operation,
                            const onnx::TypeProto& inferred) {
    if (follower_ == nullptr || IsFullTensor(inferred) || !IsFullTensor(type)) return type;
    std::string fault = follower_->ChangeDeclared(model_, operation, &type);
    if (!fault.empty()) AddMisfit(std::move(fault));
    return type;
  }

  // ---- Sequences ------------------------------------------------------------------------------

  // Returns the outputs of a node that replaces a node of the file.
  std::vector<ValueIndex> AppendMade(NodeProto made, std::vector<ValueIndex> inputs, Scope& scope) {
    model_.made_nodes.push_back(std::move(made));
    const NodeProto& node = model_.made_nodes.back();
    return AppendOperation(MakeOperation(node, std::move(inputs), scope), scope).outputs;
  }

  bool AddSequenceSplit(const NodeProto& node, const std::vector<ValueIndex>& inputs,
                        Scope& scope) {
    if (!IsStandard(node) || node.op_type() != "SplitToSequence" || node.output_size() != 1) {
      return false;
    }
    if (node.output(0).empty() || SchemaOf(node, scope) == nullptr) return false;
    const auto name_bytes = scope.prefix.size() + node.output(0).size();
    const int64_t bytes_of_part = static_cast<int64_t>(sizeof(ModelValue) + 2 * name_bytes);
    const auto split =
        ReadSequenceSplit(model_, node, inputs, (kMaxPartBytes - part_bytes_) / bytes_of_part);
    if (!split.has_value()) return false;
    part_bytes_ += static_cast<int64_t>(split->sizes.size()) * bytes_of_part;
    const int opset = scope.opsets->at("");
    Scope inner = MadeScope(scope);
    std::vector<ValueIndex> operands = {inputs[0]};
    if (opset >= kFirstOpsetOfListInputs) {
      operands.push_back(AppendMade(ListNode(node, "sizes", split->sizes), {}, inner)[0]);
    }
    Sequence sequence;
    sequence.parts = AppendMade(SplitNode(node, *split, opset), std::move(operands), inner);
    if (!split->keeps_axis) sequence.lost_axis = split->axis;
    const auto producer = static_cast<int32_t>(model_.operations.size() - 1);
    const ValueIndex value = AddValue(node.output(0), scope, ModelValue::Source::kOperation);
    model_.value(value).producer = producer;
    sequences_[value] = std::move(sequence);
    return true;
  }

  bool AddSequencePart(const NodeProto& node, const std::vector<ValueIndex>& inputs, Scope& scope) {
    if (!IsStandard(node) || node.op_type() != "SequenceAt" || node.output_size() != 1 ||
        inputs.size() != 2 || inputs[1] == kNoValue || SchemaOf(node, scope) == nullptr) {
      return false;
    }
    const auto sequence = sequences_.find(inputs[0]);
    const ConstantValue* position = model_.value(inputs[1]).constant.get();
    if (sequence == sequences_.end() || position == nullptr || position->ints.size() != 1) {
      return false;
    }
    const Sequence& from = sequence->second;
    const auto part = PartAt(from.parts.size(), position->ints[0]);
    if (!part.has_value()) {
      faults_.push_back(
          fmt::format("node \"{}\" (SequenceAt) reads position {} of a sequence of {}",
                      ShortName(node.name()), position->ints[0], from.parts.size()));
      AddUnknownOutputs(node, scope);
      return true;
    }
    AddPart(node, from.parts[*part], from.lost_axis, scope);
    return true;
  }

  void AddPart(const NodeProto& node, ValueIndex part, std::optional<int64_t> lost_axis,
               Scope& scope) {
    if (!lost_axis.has_value()) {
      AppendMade(IdentityNode(node), {part}, scope);
      return;
    }
    const int opset = scope.opsets->at("");
    std::vector<ValueIndex> operands = {part};
    if (opset >= kFirstOpsetOfListInputs) {
      Scope inner = MadeScope(scope);
      operands.push_back(AppendMade(ListNode(node, "axes", {*lost_axis}), {}, inner)[0]);
    }
    AppendMade(SqueezeNode(node, *lost_axis, opset), std::move(operands), scope);
  }

  // ---- Types and contents ---------------------------------------------------------------------

  void SetTypes(const ModelOperation& operation, const Scope& scope) {
    InferredTypes inferred = InferTypes(model_, operation);
    for (size_t i = 0; i < operation.outputs.size(); ++i) {
      if (operation.outputs[i] == kNoValue) continue;
      const std::string& name = operation.node->output(static_cast<int>(i));
      onnx::TypeProto type = types_.Choose(name, scope, operation, inferred.outputs[i]);
      SetType(model_.value(operation.outputs[i]),
              WithBatch(std::move(type), operation, inferred.outputs[i]));
    }
    if (has_other_shapes_) FindMisfit(operation, inferred.fault);
    if (!inferred.fault.empty()) {
      shape_faults_.of_onnx[static_cast<int32_t>(model_.operations.size()) - 1] =
          std::move(inferred.fault);
    }
  }

  void FindMisfit(const ModelOperation& operation, const std::string& onnx_fault) {
    const bool is_other = follower_ == nullptr || follower_->ReadsBatch(model_, operation);
    std::string fault = is_other ? MisfitOf(model_, operation, onnx_fault) : "";
    if (fault.empty() && follower_ != nullptr) fault = follower_->SetOutputs(model_, operation);
    if (!fault.empty()) AddMisfit(std::move(fault));
  }

  void FoldOperation(const ModelOperation& operation) {
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
      if (value.has_shape &&
          (value.dims != constant.dims || value.elem_type != constant.elem_type)) {
        continue;  // ONNX's own rule decides on shapes.
      }
      if (!value.has_shape) SetType(value, TensorOfType(constant.elem_type, constant.dims));
      value.constant = std::make_unique<ConstantValue>(std::move(constant));
    }
  }

  // ---- Faults ---------------------------------------------------------------------------------

  Result<Done> Report() {
    if (const std::string warning = types_.Warning(); !warning.empty()) {
      model_.warnings.push_back(fmt::format("{}: {}", file_, warning));
    }
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
    if (!sequence_readers_.empty()) return NoTensors(file_, sequence_readers_);
    if (follower_ != nullptr) TakeConstantsOfBatch();
    return CheckShapesKnown(model_, shape_faults_, bound_, file_);
  }

  Model::Impl& model_;
  const BoundDims& bound_;
  const std::string& file_;
  BatchFollower* const follower_;  // Null if the batch is that of the file.
  const ModelFunctions functions_;
  TypeChooser types_;
  const bool has_other_shapes_;  // Inputs have other shapes than in the file.
  std::unordered_map<std::string, int> used_value_names_;
  std::unordered_map<std::string, int> used_node_names_;
  ShapeFaults shape_faults_;
  std::vector<std::string> faults_;
  std::vector<std::string> unsupported_;
  std::unordered_map<ValueIndex, Sequence> sequences_;
  // Operations that read a sequence other than by SequenceAt.
  std::vector<std::string> sequence_readers_;
  int64_t part_bytes_ = 0;
  size_t made_bytes_ = 0;
  bool is_too_large_ = false;
};

}  // namespace

Result<Done> ExpandGraph(Model::Impl& model, const BoundDims& bound, const std::string& file,
                         BatchFollower* follower) {
  return Expander(model, bound, file, follower).Run();
}

}  // namespace ckplan
