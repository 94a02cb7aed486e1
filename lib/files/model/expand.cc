#include "lib/files/model/expand.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <queue>
#include <string_view>
#include <unordered_map>

#include "lib/base/stop.h"
#include "lib/files/model/bind_dims.h"
#include "lib/files/model/decompose.h"
#include "lib/files/model/expander.h"
#include "lib/files/model/hinted_types.h"
#include "lib/files/model/operation_faults.h"
#include "lib/files/model/sequences.h"
#include "lib/files/model/unknown_shapes.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

// Calls `use` with each name that a node reads, including in its branches.
void ForEachRead(const onnx::NodeProto& node, const std::function<void(std::string_view)>& use) {
  for (const std::string& name : node.input()) use(name);
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (!attribute.has_g()) continue;
    for (const onnx::NodeProto& inner : attribute.g().node()) ForEachRead(inner, use);
    for (const onnx::ValueInfoProto& output : attribute.g().output()) use(output.name());
  }
}

// The nodes that wait for each node, and how many nodes each one waits for.
struct Waiting {
  std::vector<std::vector<int>> readers;
  std::vector<int> missing;
  bool is_sorted = true;
};

Waiting FindWaiting(const Nodes& nodes) {
  std::unordered_map<std::string_view, int> producers;
  for (int i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : nodes[i].output()) {
      if (!name.empty()) producers.emplace(name, i);
    }
  }
  Waiting waiting;
  waiting.readers.resize(static_cast<size_t>(nodes.size()));
  waiting.missing.resize(static_cast<size_t>(nodes.size()));
  for (int i = 0; i < nodes.size(); ++i) {
    PollStop();
    ForEachRead(nodes[i], [&](std::string_view name) {
      const auto producer = producers.find(name);
      if (producer == producers.end() || producer->second == i) return;
      waiting.readers[static_cast<size_t>(producer->second)].push_back(i);
      ++waiting.missing[static_cast<size_t>(i)];
      waiting.is_sorted = waiting.is_sorted && producer->second < i;
    });
  }
  return waiting;
}

}  // namespace

NodeOrder OrderOf(const Nodes& nodes) {
  NodeOrder order;
  order.nodes.resize(static_cast<size_t>(nodes.size()));
  std::iota(order.nodes.begin(), order.nodes.end(), 0);
  Waiting waiting = FindWaiting(nodes);
  if (waiting.is_sorted) return order;
  // Among the nodes that can run, take the first in the file.
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (const int i : order.nodes) {
    if (waiting.missing[static_cast<size_t>(i)] == 0) ready.push(i);
  }
  std::vector<int> sorted;
  while (!ready.empty()) {
    PollStop();
    const int node = ready.top();
    ready.pop();
    sorted.push_back(node);
    for (const int reader : waiting.readers[static_cast<size_t>(node)]) {
      if (--waiting.missing[static_cast<size_t>(reader)] == 0) ready.push(reader);
    }
  }
  order.is_changed = true;
  for (const int i : order.nodes) {
    if (waiting.missing[static_cast<size_t>(i)] > 0) order.in_cycle.push_back(i);
  }
  sorted.insert(sorted.end(), order.in_cycle.begin(), order.in_cycle.end());
  order.nodes = std::move(sorted);
  return order;
}

namespace {

using onnx::GraphProto;
using onnx::NodeProto;

constexpr int kMaxNesting = 64;  // Branches and calls within each other; deeper recursion is
                                 // refused.
constexpr size_t kMaxOperations = 4'000'000;
constexpr size_t kMaxMadeBytes = size_t{1} << 28;  // Nodes copied to fill in attributes.

// An attempt to unroll the node may already have used the name, so it isn't made unique.
std::string DeadEndText(const NodeProto& node, const Scope& scope) {
  const std::string own = node.name().empty() && node.output_size() > 0
                              ? fmt::format("{}:{}", node.op_type(), node.output(0))
                              : node.name();
  return fmt::format("{} \"{}\"", node.op_type(), ShortName(scope.prefix + own));
}

std::vector<std::string> ListOf(const google::protobuf::RepeatedPtrField<std::string>& names) {
  return {names.begin(), names.end()};
}

}  // namespace

Result<Done> Expander::Run() {
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
  for (const onnx::ValueInfoProto* input : bound_.not_numbers) {
    const bool is_text = input->type().has_tensor_type();
    dead_ends_[*Find(input->name(), scope)] = {
        DeadEnd::Kind::kInput,
        fmt::format("input \"{}\" is {}", ShortName(input->name()),
                    is_text ? "text" : "not a tensor"),
        {}};
  }
  builder_.AddInitializers(proto.graph(), scope, &model_.part);
  const NodeOrder order = OrderOf(proto.graph().node());
  if (order.is_changed) {
    model_.warnings.push_back(
        fmt::format("{}: nodes read values before they are produced, which ONNX forbids; "
                    "ckplan reorders them",
                    file_));
  }
  for (const int node : order.in_cycle) {
    const auto& outputs = proto.graph().node(node).output();
    in_cycle_.insert(outputs.begin(), outputs.end());
  }
  for (const int i : order.nodes) {
    if (!model_.part.has_node[static_cast<size_t>(i)]) continue;
    scope.file_node = i;
    Expand(proto.graph().node(i), scope);
    if (is_too_large_) break;
    for (const std::string& name : proto.graph().node(i).output()) {
      const auto value = name.empty() ? std::nullopt : Find(name, scope);
      if (value && *value != kNoValue && model_.value(*value).name != name) {
        model_.main_names.emplace(*value, name);
      }
    }
  }
  AddOutputs(scope);
  return Report();
}

void Expander::AddOutputs(const Scope& scope) {
  for (const std::string& output : model_.part.outputs) {
    const auto value = Find(output, scope);
    if (value.has_value() && *value != kNoValue) {
      model_.graph_outputs.push_back(*value);
      if (!sequences_.contains(*value)) continue;
      dead_ends_[*value] = {
          DeadEnd::Kind::kSequence, fmt::format("output \"{}\"", ShortName(output)), {}};
    } else {
      builder_.AddFault(
          fmt::format("nothing produces the graph's output \"{}\"", ShortName(output)));
    }
  }
}

void Expander::Expand(const NodeProto& source, Scope& scope) {
  PollStop();
  is_too_large_ = is_too_large_ || scope.depth > kMaxNesting ||
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
  const bool is_control_flow = IsStandard(*node) || SchemaOf(*node, scope) == nullptr;
  if (HoldsGraph(*node) && is_control_flow) return ExpandControlFlow(*node, scope);
  AddOperation(*node, scope);
}

std::optional<Expander::Values> Expander::ResolveInputs(const NodeProto& node, const Scope& scope) {
  Values inputs;
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
          in_cycle_.contains(name) ? "depends on its result" : "nothing before it produces"));
      return std::nullopt;
    }
    inputs.push_back(*value);
  }
  return inputs;
}

void Expander::ExpandCall(const NodeProto& node, const onnx::FunctionProto& function,
                          Scope& scope) {
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
  ExpandAll(function.node(), body);
  BindOutputs(node, ListOf(function.output()), body, scope);
}

void Expander::BindOutputs(const NodeProto& node, const std::vector<std::string>& inner_names,
                           const Scope& inner, Scope& scope) {
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    const auto at = static_cast<size_t>(i);
    const auto value = at < inner_names.size() ? Find(inner_names[at], inner) : std::nullopt;
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

void Expander::ExpandAll(const google::protobuf::RepeatedPtrField<NodeProto>& nodes, Scope& scope) {
  for (const int i : OrderOf(nodes).nodes) Expand(nodes.Get(i), scope);
}

void Expander::AddOperation(const NodeProto& node, Scope& scope) {
  auto inputs = ResolveInputs(node, scope);
  if (!inputs.has_value()) return builder_.AddUnknownOutputs(node, scope);
  if (AddSequenceOperation(node, *inputs, scope)) return;
  const bool reads_sequence = std::any_of(inputs->begin(), inputs->end(), [this](ValueIndex input) {
    return sequences_.contains(input);
  });
  if (reads_sequence) {
    return AddDeadEnd(node, DeadEnd::Kind::kSequence, "", std::move(*inputs), scope);
  }
  if (AddDecomposed(node, *inputs, scope)) return;
  std::string batch_fault;
  const NodeProto& followed = FollowBatch(node, &*inputs, &batch_fault, scope);
  const ModelOperation* operation = builder_.Append(followed, std::move(*inputs), scope);
  if (operation != nullptr && !batch_fault.empty()) builder_.AddShapeFault(std::move(batch_fault));
}

bool Expander::AddDecomposed(const NodeProto& node, const Values& inputs, Scope& scope) {
  const bool is_known = SchemaOf(node, scope) != nullptr && !IsDecomposed(node);
  if (is_known || GivenHintFor(model_, node) != nullptr) return false;
  ModelOperation whole;
  whole.node = &node;
  whole.inputs = inputs;
  if (!ContribFault(model_, whole).empty()) return false;  // Type inference reports it.
  const std::optional<Decomposition> made = Decompose(model_, node, inputs);
  if (!made) return false;
  for (const Decomposition::Assumption& assumption : made->assumptions) {
    Warn(fmt::format("{}: {}", node.op_type(), assumption.text),
         assumption.operand ? inputs[*assumption.operand] : kNoValue);
  }
  static const DeclaredTypes kNoTypes;
  static const CallAttributes kNoAttributes;
  Scope body{nullptr,   scope.prefix,    &DecompositionOpsets(), &kNoAttributes,
             &kNoTypes, scope.depth + 1, scope.file_node,        {}};
  for (size_t i = 0; i < inputs.size(); ++i) body.names[OperandName(i)] = inputs[i];
  for (const NodeProto& part : made->nodes) {
    model_.made_nodes.push_back(part);
    made_bytes_ += part.ByteSizeLong();
    Expand(model_.made_nodes.back(), body);
  }
  BindOutputs(node, made->outputs, body, scope);
  return true;
}

void Expander::Warn(std::string text, ValueIndex deciding, const std::string& otherwise) {
  std::vector<std::string> switches;
  if (deciding != kNoValue) switches = FindSwitches(model_, dead_ends_, deciding);
  text = fmt::format("{}: {}", file_, text);
  text += switches.empty() ? otherwise
                           : fmt::format("; choose with --set {}=...", ShortName(switches.front()));
  auto& warnings = model_.warnings;
  if (std::find(warnings.begin(), warnings.end(), text) == warnings.end()) {
    warnings.push_back(std::move(text));
  }
}

const ConstantValue* Expander::KnownContents(ValueIndex value) const {
  return value == kNoValue ? nullptr : model_.value(value).constant.get();
}

Expander::Values Expander::CapturedBy(const NodeProto& node, const Scope& scope) const {
  std::vector<std::string> names;
  AppendReads(node, &names);
  Values captured;
  for (const std::string& name : names) {
    const auto value = name.empty() ? std::nullopt : Find(name, scope);
    if (value && *value != kNoValue) captured.push_back(*value);
  }
  return captured;
}

void Expander::AddDeadEnd(const NodeProto& node, DeadEnd::Kind kind, std::string what, Values reads,
                          Scope& scope) {
  DeadEnd dead{kind, DeadEndText(node, scope), std::move(reads)};
  if (!what.empty()) dead.what += ": " + what;
  for (const std::string& name : node.output()) {
    if (name.empty()) continue;
    dead_ends_[builder_.AddValue(name, scope, ModelValue::Source::kOperation)] = dead;
  }
}

const NodeProto& Expander::FollowBatch(const NodeProto& node, Values* inputs, std::string* fault,
                                       Scope& scope) {
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

Result<Done> Expander::Report() {
  if (const std::string warning = builder_.TypeWarning(); !warning.empty()) {
    model_.warnings.push_back(fmt::format("{}: {}", file_, warning));
  }
  if (is_too_large_) {
    return MakeError(ErrorCode::kUnsupported,
                     fmt::format("{}: its branches and calls are nested more than {} levels "
                                 "deep, make more than {} operations, or more than {} MiB of "
                                 "attributes; export it without functions",
                                 file_, kMaxNesting, kMaxOperations, kMaxMadeBytes >> 20));
  }
  if (!builder_.faults().empty()) {
    return InvalidModel(file_, "the model is damaged or contradicts itself", builder_.faults());
  }
  const std::vector<bool> is_needed = FindNeeded(model_, dead_ends_);
  CKPLAN_RETURN_IF_ERROR(builder_.CheckFaults(is_needed, file_));
  MarkDeadOutputs(dead_ends_, &model_);
  CKPLAN_RETURN_IF_ERROR(CheckDeadEnds(model_, dead_ends_, is_needed, file_));
  CKPLAN_RETURN_IF_ERROR(CheckShapesKnown(model_, dead_ends_, is_needed, file_));
  DropUnmade();
  return Done{};
}

void Expander::DropUnmade() {
  std::vector<ModelOperation> made;
  made.reserve(model_.operations.size());
  for (ModelOperation& operation : model_.operations) {
    const bool reads_unmade =
        std::any_of(operation.inputs.begin(), operation.inputs.end(), [this](ValueIndex input) {
          return input != kNoValue &&
                 model_.value(input).source == ModelValue::Source::kOperation &&
                 model_.value(input).producer < 0;
        });
    const auto index = reads_unmade ? -1 : static_cast<int32_t>(made.size());
    for (const ValueIndex output : operation.outputs) {
      if (output != kNoValue) model_.value(output).producer = index;
    }
    if (!reads_unmade) made.push_back(std::move(operation));
  }
  model_.operations = std::move(made);
}

Result<Done> ExpandGraph(Model::Impl& model, const BoundDims& bound, const std::string& file,
                         BatchFollower* follower) {
  return Expander(model, bound, file, follower).Run();
}

namespace {

using onnx::FunctionProto;
using onnx::NodeProto;

constexpr int kMaxCallDepth = 64;
// These take about a gigabyte of memory. The file's own operations are limited by its size.
constexpr int64_t kMaxExpandedOperations = 250'000;
constexpr int64_t kMaxExpandedEntries = 5'000'000;
constexpr int64_t kMaxExpandedNameBytes = int64_t{256} << 20;

// Sums saturate here, so that counts can't overflow.
constexpr int64_t kSaturatedSum = int64_t{1} << 40;

int64_t Sum(int64_t a, int64_t b) { return std::min(a + b, kSaturatedSum); }
int64_t Product(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kSaturatedSum : std::min(product, kSaturatedSum);
}

// The result of one expansion of a body.
struct Size {
  int64_t operations = 0;
  int64_t entries = 0;     // Operands, attributes and declarations to visit.
  int64_t names = 0;       // Names that start with the call's prefix.
  int64_t name_bytes = 0;  // Bytes of these names without that prefix.
  int depth = 0;           // The nesting of calls within it.

  void Add(const Size& other, int64_t prefix_bytes) {
    operations = Sum(operations, other.operations);
    entries = Sum(entries, other.entries);
    names = Sum(names, other.names);
    name_bytes = Sum(name_bytes, Sum(other.name_bytes, Product(other.names, prefix_bytes)));
    depth = std::max(depth, other.depth);
  }
};

class ExpansionCounter {
 public:
  explicit ExpansionCounter(const ModelFunctions& functions) : functions_(functions) {}

  // `is_call` is true within a call, where operations count.
  template <typename Nodes>
  Size OfNodes(const Nodes& nodes, bool is_call, int depth) {
    Size size;
    for (const NodeProto& node : nodes) AddNode(node, is_call, depth, size);
    return size;
  }

  bool is_too_deep() const { return is_too_deep_; }

 private:
  void AddNode(const NodeProto& node, bool is_call, int depth, Size& size) {
    const int64_t prefix = PrefixBytes(node);
    if (const FunctionProto* function = functions_.Find(node)) {
      size.entries = Sum(size.entries, EntriesOf(node));
      return size.Add(OfFunction(*function, depth), prefix);
    }
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) size.Add(OfNodes(attribute.g().node(), is_call, depth), prefix);
      for (const auto& graph : attribute.graphs()) {
        size.Add(OfNodes(graph.node(), is_call, depth), prefix);
      }
    }
    if (!is_call) return;
    size.operations = Sum(size.operations, 1);
    size.entries = Sum(size.entries, EntriesOf(node));
    size.names = Sum(size.names, 1 + node.output_size());
    size.name_bytes = Sum(size.name_bytes, prefix);
    for (const std::string& output : node.output()) {
      size.name_bytes = Sum(size.name_bytes, static_cast<int64_t>(output.size()));
    }
  }

  Size OfFunction(const FunctionProto& function, int depth) {
    if (depth >= kMaxCallDepth) {
      is_too_deep_ = true;
      return {};
    }
    auto found = sizes_.find(&function);
    if (found == sizes_.end()) {
      Size size = OfNodes(function.node(), true, depth + 1);
      size.entries =
          Sum(size.entries, function.input_size() + function.attribute_proto_size() +
                                function.opset_import_size() + function.value_info_size());
      ++size.depth;
      found = sizes_.emplace(&function, size).first;
    }
    is_too_deep_ = is_too_deep_ || depth + found->second.depth > kMaxCallDepth;
    return found->second;
  }

  static int64_t EntriesOf(const NodeProto& node) {
    return int64_t{node.input_size()} + node.output_size() + node.attribute_size();
  }

  // Returns the length of the prefix of the names that replace a node.
  static int64_t PrefixBytes(const NodeProto& node) {
    if (!node.name().empty()) return static_cast<int64_t>(node.name().size()) + 1;
    const size_t output = node.output_size() > 0 ? node.output(0).size() : 0;
    return static_cast<int64_t>(node.op_type().size() + output) + 2;
  }

  const ModelFunctions& functions_;
  std::unordered_map<const FunctionProto*, Size> sizes_;
  bool is_too_deep_ = false;
};

}  // namespace

Result<Done> CheckExpansion(const onnx::ModelProto& model, const ModelFunctions& functions,
                            const std::string& file) {
  if (functions.empty()) return Done{};
  ExpansionCounter counter(functions);
  const Size size = counter.OfNodes(model.graph().node(), false, 0);
  if (counter.is_too_deep()) {
    return MakeError(ErrorCode::kUnsupported,
                     fmt::format("{}: its functions call each other more than {} levels deep; "
                                 "inline them first",
                                 file, kMaxCallDepth));
  }
  if (size.operations > kMaxExpandedOperations || size.entries > kMaxExpandedEntries ||
      size.name_bytes > kMaxExpandedNameBytes) {
    return MakeError(
        ErrorCode::kUnsupported,
        fmt::format("{}: its functions expand to more than {} operations, {} operands or {} MiB of "
                    "names; export it with fewer or smaller functions",
                    file, kMaxExpandedOperations, kMaxExpandedEntries,
                    kMaxExpandedNameBytes >> 20));
  }
  return Done{};
}

}  // namespace ckplan
