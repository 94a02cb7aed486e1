#include "lib/algorithms/given/decided_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/nearest_name.h"
#include "lib/base/printable.h"
#include "lib/base/stop.h"
#include "lib/plan/plan.h"

namespace ckplan {
namespace {

constexpr size_t kShownName = 80;

std::string QuotedName(std::string_view name) {
  return fmt::format("\"{}\"", Printable(name, kShownName));
}

}  // namespace

DecidedNames::DecidedNames(const TensorGraph& graph) : graph_(graph) {
  for (const TensorId id : graph.tensors().ids()) {
    tensors_.emplace(WellFormedUtf8(graph.tensor(id).name), id);
    tensor_ids_.emplace(graph.tensor(id).file_id, id);
  }
  for (const NodeId id : graph.nodes().ids()) {
    PollStop();
    const std::string name = WellFormedUtf8(graph.node(id).name);
    if (!name.empty()) nodes_[name].push_back(id);
    node_ids_.emplace(graph.node(id).file_id, id);
  }
}

NodeId DecidedNames::FindNode(const NameOrId& what, std::string_view where) {
  if (what.name.empty()) {
    const auto found = node_ids_.find(what.id);
    if (found != node_ids_.end()) return found->second;
    Fault(where, fmt::format("no node has the number {}", what.id));
    return NodeId();
  }
  const auto named = nodes_.find(what.name);
  if (named != nodes_.end() && named->second.size() == 1) return named->second.front();
  if (named != nodes_.end()) {
    Fault(where, fmt::format("{} nodes are named {}; name the one by a tensor that it makes, or by "
                             "its number",
                             named->second.size(), QuotedName(what.name)));
    return NodeId();
  }
  const auto tensor = tensors_.find(what.name);
  if (tensor == tensors_.end()) {
    FaultOfName(what, "node or tensor", where);
    return NodeId();
  }
  const NodeId maker = graph_.tensor(tensor->second).producer;
  if (maker.is_none()) {
    Fault(where,
          fmt::format("{} is an input of the graph, which no node makes", QuotedName(what.name)));
  }
  return maker;
}

NodeId DecidedNames::FindMaker(const NameOrId& what, std::string_view where) {
  if (what.name.empty()) {
    const TensorId tensor = FindTensor(what, where);
    return tensor.is_none() ? NodeId() : graph_.tensor(tensor).producer;
  }
  const auto tensor = tensors_.find(what.name);
  if (tensor != tensors_.end()) return graph_.tensor(tensor->second).producer;
  return FindNode(what, where);
}

TensorId DecidedNames::FindTensor(const NameOrId& what, std::string_view where) {
  if (what.name.empty()) {
    const auto found = tensor_ids_.find(what.id);
    if (found != tensor_ids_.end()) return found->second;
    Fault(where, fmt::format("no tensor has the number {}", what.id));
    return TensorId();
  }
  const auto found = tensors_.find(what.name);
  if (found != tensors_.end()) return found->second;
  FaultOfName(what, "tensor", where);
  return TensorId();
}

std::string DecidedNames::Quoted(NodeId id) const {
  const Node& node = graph_.node(id);
  return QuotedName(!node.name.empty() ? node.name : graph_.tensor(node.outputs.front()).name);
}

void DecidedNames::FaultOfName(const NameOrId& what, std::string_view kind,
                               std::string_view where) {
  std::string meant;
  if (faults_.size() < kMaxFaults) {
    std::vector<std::string_view> names;
    if (kind != "tensor") {
      for (const auto& [name, ids] : nodes_) names.push_back(name);
    }
    for (const auto& [name, id] : tensors_) names.push_back(name);
    std::sort(names.begin(), names.end());  // Of equally near names the first is meant.
    meant = DidYouMean(what.name, names);
  }
  Fault(where, fmt::format("no {} is named {}{}", kind, QuotedName(what.name), meant));
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
