#include "lib/planning/algorithms/given/decided_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/stop.h"
#include "lib/base/text.h"
#include "lib/planning/plan/plan.h"

namespace ckplan {
namespace {

constexpr size_t kShownName = 80;

std::string QuoteName(std::string_view name) {
  return fmt::format("\"{}\"", Printable(name, kShownName));
}

}  // namespace

DecidedNames::DecidedNames(const TensorGraph& graph) : DecidedNames("node", "tensor") {
  for (const TensorId id : graph.tensors().ids()) {
    const Tensor& tensor = graph.tensor(id);
    AddTensor(id, tensor.name, tensor.file_id, tensor.producer);
  }
  for (const NodeId id : graph.nodes().ids()) {
    const Node& node = graph.node(id);
    AddNode(id, node.name, node.file_id, node.outputs);
  }
}

DecidedNames::DecidedNames(const JointGraph& graph) : DecidedNames("operation", "value") {
  for (const ValueId id : graph.values().ids()) {
    const Value& value = graph.value(id);
    AddTensor(id, value.name, value.file_id, value.producer);
  }
  for (const OpId id : graph.ops().ids()) {
    const Operation& op = graph.op(id);
    AddNode(id, op.name, op.file_id, op.writes);
  }
}

void DecidedNames::AddNode(NodeId id, const std::string& name, int64_t file_id,
                           const std::vector<TensorId>& outputs) {
  PollStop();
  node_ids_.emplace(file_id, id);
  const std::string known = WellFormedUtf8(name);
  if (!known.empty()) nodes_[known].push_back(id);
  const bool is_nameless = name.empty() && !outputs.empty();
  shown_names_.push_back(is_nameless ? tensor_names_[outputs.front()] : name);
}

void DecidedNames::AddTensor(TensorId id, const std::string& name, int64_t file_id,
                             NodeId producer) {
  PollStop();
  tensors_[WellFormedUtf8(name)].push_back(id);
  tensor_ids_.emplace(file_id, id);
  tensor_names_.push_back(name);
  producers_.push_back(producer);
}

NodeId DecidedNames::FindNode(const NameOrId& what, std::string_view where) {
  if (what.name.empty()) {
    const auto found = node_ids_.find(what.id);
    if (found != node_ids_.end()) return found->second;
    Fault(where, fmt::format("there is no {} with number {}", node_word_, what.id));
    return NodeId();
  }
  const auto nodes = nodes_.find(what.name);
  if (nodes != nodes_.end() && nodes->second.size() == 1) return nodes->second.front();
  if (nodes != nodes_.end()) {
    Fault(where,
          fmt::format("{} {}s are named {}; identify it by the name of a {} that it produces, or "
                      "by its number",
                      nodes->second.size(), node_word_, QuoteName(what.name), tensor_word_));
    return NodeId();
  }
  if (!HasTensor(what)) {
    AddNameFault(what, /*may_be_node=*/true, where);
    return NodeId();
  }
  const TensorId tensor = FindTensor(what, where);
  if (tensor.is_none()) return NodeId();
  const NodeId producer = producers_[tensor];
  if (producer.is_none()) {
    Fault(where, fmt::format("{} is an input of the graph; no {} produces it", QuoteName(what.name),
                             node_word_));
  }
  return producer;
}

NodeId DecidedNames::FindProducer(const NameOrId& what, std::string_view where) {
  if (!what.name.empty() && !HasTensor(what)) return FindNode(what, where);
  const TensorId tensor = FindTensor(what, where);
  return tensor.is_none() ? NodeId() : producers_[tensor];
}

TensorId DecidedNames::FindTensor(const NameOrId& what, std::string_view where) {
  if (what.name.empty()) {
    const auto found = tensor_ids_.find(what.id);
    if (found != tensor_ids_.end()) return found->second;
    Fault(where, fmt::format("there is no {} with number {}", tensor_word_, what.id));
    return TensorId();
  }
  const auto found = tensors_.find(what.name);
  if (found == tensors_.end()) {
    AddNameFault(what, /*may_be_node=*/false, where);
    return TensorId();
  }
  if (found->second.size() == 1) return found->second.front();
  Fault(where, fmt::format("{} {}s are named {}; identify it by its number", found->second.size(),
                           tensor_word_, QuoteName(what.name)));
  return TensorId();
}

bool DecidedNames::HasTensor(const NameOrId& what) const {
  return what.name.empty() ? tensor_ids_.count(what.id) != 0 : tensors_.count(what.name) != 0;
}

std::string DecidedNames::Quoted(NodeId id) const { return QuoteName(shown_names_[id]); }

void DecidedNames::AddNameFault(const NameOrId& what, bool may_be_node, std::string_view where) {
  std::string hint;
  if (faults_.size() < kMaxFaults) {
    std::vector<std::string_view> names;
    if (may_be_node) {
      for (const auto& [name, ids] : nodes_) names.push_back(name);
    }
    for (const auto& [name, ids] : tensors_) names.push_back(name);
    std::sort(names.begin(), names.end());  // Makes the suggestion deterministic.
    hint = DidYouMean(what.name, names);
  }
  Fault(where,
        fmt::format("no {}{} is named {}{}", may_be_node ? fmt::format("{} or ", node_word_) : "",
                    tensor_word_, QuoteName(what.name), hint));
}

void DecidedNames::Fault(std::string_view where, std::string_view what) {
  ++fault_count_;
  if (faults_.size() < kMaxFaults) faults_.push_back(fmt::format("{}: {}", where, what));
}

Result<Done> DecidedNames::Status() const {
  if (faults_.empty()) return Done{};
  Error error = MakeError(ErrorCode::kInvalidInput, "decisions: " + faults_.front());
  for (size_t i = 1; i < faults_.size(); ++i) error.notes.push_back(faults_[i]);
  if (fault_count_ > faults_.size()) {
    error.notes.push_back(fmt::format("and {} more", fault_count_ - faults_.size()));
  }
  return error;
}

}  // namespace ckplan
