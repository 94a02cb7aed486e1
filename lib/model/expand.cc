#include "lib/model/expand.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "lib/base/stop.h"
#include "lib/graph/tensor_graph.h"
#include "lib/model/expansion_size.h"
#include "lib/model/follow_batch.h"
#include "lib/model/functions.h"
#include "lib/model/model_builder.h"
#include "lib/model/node_order.h"
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

struct Sequence {
  std::vector<ValueIndex> parts;
  std::optional<int64_t> lost_axis;  // Its parts have one element on this axis and drop it.
};

class Expander {
 public:
  Expander(Model::Impl& model, const BoundDims& bound, const std::string& file,
           BatchFollower* follower)
      : model_(model),
        file_(file),
        follower_(follower),
        functions_(*model.proto),
        builder_(model, bound, follower) {}

  Result<Done> Run() {
    const onnx::ModelProto& proto = *model_.proto;
    CKPLAN_RETURN_IF_ERROR(CheckExpansion(proto, functions_, file_));
    const OpsetVersions opsets = OpsetsOf(proto);
    const DeclaredTypes declared = DeclaredIn(proto.graph());
    Scope scope;
    const auto nodes = static_cast<size_t>(proto.graph().node_size());
    scope.names.reserve(nodes);
    builder_.Reserve(nodes);
    scope.opsets = &opsets;
    scope.declared = &declared;
    builder_.AddInputs(scope);
    builder_.AddInitializers(proto.graph(), scope);
    const NodeOrder order = OrderOf(proto.graph().node());
    if (order.is_changed) {
      model_.warnings.push_back(fmt::format(
          "{}: nodes are read before they are made, which ONNX forbids; they are taken in an order "
          "that works",
          file_));
    }
    for (const int node : order.in_cycle) {
      const auto& outputs = proto.graph().node(node).output();
      in_cycle_.insert(outputs.begin(), outputs.end());
    }
    for (const int i : order.nodes) {
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
        builder_.AddFault(
            fmt::format("nothing produces the graph's output \"{}\"", ShortName(output.name())));
      }
    }
    return Report();
  }

 private:
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
        builder_.AddFault(fmt::format(
            "node \"{}\" ({}) reads \"{}\", which {}", ShortName(node.name()), node.op_type(),
            ShortName(name),
            in_cycle_.contains(name) ? "needs its result in turn" : "nothing before it produces"));
        return std::nullopt;
      }
      inputs.push_back(*value);
    }
    return inputs;
  }

  void ExpandCall(const NodeProto& node, const onnx::FunctionProto& function, Scope& scope) {
    const auto inputs = ResolveInputs(node, scope);
    if (!inputs.has_value()) return builder_.AddUnknownOutputs(node, scope);
    CallAttributes attributes;
    for (const auto& attribute : function.attribute_proto())
      attributes[attribute.name()] = &attribute;
    for (const auto& attribute : node.attribute()) attributes[attribute.name()] = &attribute;
    OpsetVersions opsets = *scope.opsets;
    for (const auto& [domain, version] : OpsetsOf(function)) opsets[domain] = version;
    DeclaredTypes declared;
    for (const auto& info : function.value_info()) declared[info.name()] = &info.type();
    Scope body{nullptr,         builder_.NodeName(node, scope) + "/",
               &opsets,         &attributes,
               &declared,       scope.depth + 1,
               scope.file_node, {}};
    for (int i = 0; i < function.input_size(); ++i) {
      const auto at = static_cast<size_t>(i);
      body.names[function.input(i)] = at < inputs->size() ? (*inputs)[at] : kNoValue;
    }
    for (const int i : OrderOf(function.node()).nodes) Expand(function.node(i), body);
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
          builder_.AddFault(fmt::format("nothing in \"{}\" ({}) produces its output \"{}\"",
                                        ShortName(node.name()), node.op_type(),
                                        ShortName(node.output(i))));
        }
        builder_.AddValue(node.output(i), scope, ModelValue::Source::kOperation);
      } else {
        builder_.AddName(node.output(i), *value, node.op_type(), scope);
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
        fmt::format("{} \"{}\"", node.op_type(), ShortName(builder_.NodeName(node, scope))));
    builder_.AddUnknownOutputs(node, scope);
  }

  void ExpandBranch(const NodeProto& node, const GraphProto& branch, Scope& scope) {
    const DeclaredTypes declared = DeclaredIn(branch);
    Scope inner{&scope,          builder_.NodeName(node, scope) + "/",
                scope.opsets,    nullptr,
                &declared,       scope.depth + 1,
                scope.file_node, {}};
    builder_.AddInitializers(branch, inner);
    for (const int i : OrderOf(branch.node()).nodes) Expand(branch.node(i), inner);
    google::protobuf::RepeatedPtrField<std::string> names;
    for (const auto& output : branch.output()) *names.Add() = output.name();
    BindOutputs(node, names, inner, scope);
  }

  void AddOperation(const NodeProto& node, Scope& scope) {
    auto inputs = ResolveInputs(node, scope);
    if (!inputs.has_value()) return builder_.AddUnknownOutputs(node, scope);
    if (AddSequenceSplit(node, *inputs, scope) || AddSequencePart(node, *inputs, scope)) return;
    std::string batch_fault;
    const NodeProto& followed = FollowBatch(node, &*inputs, &batch_fault, scope);
    const ModelOperation* operation = builder_.Append(followed, std::move(*inputs), scope);
    if (operation == nullptr) return;
    if (!batch_fault.empty()) builder_.AddMisfit(std::move(batch_fault));
    const bool reads_sequence =
        std::any_of(operation->inputs.begin(), operation->inputs.end(),
                    [this](ValueIndex input) { return sequences_.contains(input); });
    if (reads_sequence) {
      sequence_readers_.push_back(
          fmt::format("{} \"{}\"", operation->type(), ShortName(operation->name)));
    }
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
      (*inputs)[list.operand] =
          builder_.AppendMade(ConstantNode(node, what, list.numbers), {}, inner)[0];
    }
    for (const FollowedNode::List& list : followed.expanded) {
      const std::string what = fmt::format("batch{}", list.operand);
      const ValueIndex dims =
          builder_.AppendMade(ConstantNode(node, what, list.numbers), {}, inner)[0];
      (*inputs)[list.operand] =
          builder_.AppendMade(ExpandNode(node, static_cast<int>(list.operand), what),
                              {(*inputs)[list.operand], dims}, inner)[0];
    }
    if (!followed.node) return node;
    model_.made_nodes.push_back(std::move(*followed.node));
    return model_.made_nodes.back();
  }

  // ---- Sequences ------------------------------------------------------------------------------

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
      operands.push_back(builder_.AppendMade(ListNode(node, "sizes", split->sizes), {}, inner)[0]);
    }
    Sequence sequence;
    sequence.parts =
        builder_.AppendMade(SplitNode(node, *split, opset), std::move(operands), inner);
    if (!split->keeps_axis) sequence.lost_axis = split->axis;
    const auto producer = static_cast<int32_t>(model_.operations.size() - 1);
    const ValueIndex value =
        builder_.AddValue(node.output(0), scope, ModelValue::Source::kOperation);
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
      builder_.AddFault(
          fmt::format("node \"{}\" (SequenceAt) reads position {} of a sequence of {}",
                      ShortName(node.name()), position->ints[0], from.parts.size()));
      builder_.AddUnknownOutputs(node, scope);
      return true;
    }
    AddPart(node, from.parts[*part], from.lost_axis, scope);
    return true;
  }

  void AddPart(const NodeProto& node, ValueIndex part, std::optional<int64_t> lost_axis,
               Scope& scope) {
    if (!lost_axis.has_value()) {
      builder_.AppendMade(IdentityNode(node), {part}, scope);
      return;
    }
    const int opset = scope.opsets->at("");
    std::vector<ValueIndex> operands = {part};
    if (opset >= kFirstOpsetOfListInputs) {
      Scope inner = MadeScope(scope);
      operands.push_back(builder_.AppendMade(ListNode(node, "axes", {*lost_axis}), {}, inner)[0]);
    }
    builder_.AppendMade(SqueezeNode(node, *lost_axis, opset), std::move(operands), scope);
  }

  // ---- Faults ---------------------------------------------------------------------------------

  Result<Done> Report() {
    if (const std::string warning = builder_.TypeWarning(); !warning.empty()) {
      model_.warnings.push_back(fmt::format("{}: {}", file_, warning));
    }
    if (is_too_large_) {
      return MakeError(ErrorCode::kUnsupported,
                       fmt::format("{}: its branches and calls are nested more than {} levels "
                                   "deep, make more than {} operations, or more than {} MiB of "
                                   "attributes; export it without functions",
                                   file_, kDeepestNesting, kMaxOperations, kMaxMadeBytes >> 20));
    }
    if (!builder_.faults().empty()) {
      return InvalidModel(file_, "the model is damaged or contradicts itself", builder_.faults());
    }
    if (!unsupported_.empty()) {
      return MakeError(
          ErrorCode::kUnsupported,
          fmt::format("{}: control flow cannot be planned: {}; only an If whose condition is "
                      "constant can; export the model without data-dependent branches and loops",
                      file_, ShortList(unsupported_)));
    }
    if (!sequence_readers_.empty()) return NoTensors(file_, sequence_readers_);
    return builder_.CheckShapes(file_);
  }

  Model::Impl& model_;
  const std::string& file_;
  BatchFollower* const follower_;  // Null if the batch is that of the file.
  const ModelFunctions functions_;
  ModelBuilder builder_;
  std::unordered_set<std::string> in_cycle_;  // Results of nodes that need each other.
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
