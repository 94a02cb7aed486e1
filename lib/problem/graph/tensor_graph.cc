#include "lib/problem/graph/tensor_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/base/faults.h"
#include "lib/base/stop.h"
#include "lib/base/units.h"

namespace ckplan {

Bytes SizeOf(const std::vector<OptimizedTensors>& tensors) {
  Bytes sum;
  for (const OptimizedTensors& row : tensors) {
    sum += row.count * Bytes(row.elements * row.element_bytes);
  }
  return sum;
}

std::vector<OptimizedTensors> Merged(std::vector<OptimizedTensors> tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return std::tie(a.element_bytes, a.elements) < std::tie(b.element_bytes, b.elements);
  });
  std::vector<OptimizedTensors> merged;
  for (const OptimizedTensors& next : tensors) {
    if (next.elements == 0 || next.count == 0) continue;
    const bool is_same = !merged.empty() && merged.back().elements == next.elements &&
                         merged.back().element_bytes == next.element_bytes;
    if (is_same) {
      merged.back().count += next.count;
    } else {
      merged.push_back(next);
    }
  }
  return merged;
}

namespace {

// Tests in O(1) whether the list of the latest SetList contains a tensor.
class Membership {
 public:
  explicit Membership(size_t tensor_count) : list_of_(tensor_count, 0) {}
  void SetList(const std::vector<TensorId>& list) {
    ++current_;
    for (const TensorId id : list) list_of_[id] = current_;
  }
  bool Has(TensorId id) const { return list_of_[id] == current_; }

 private:
  int64_t current_ = 0;
  IdVector<TensorId, int64_t> list_of_;  // The last list that held the tensor.
};

class TensorGraphValidator {
 public:
  explicit TensorGraphValidator(const TensorGraphParts& parts)
      : parts_(parts), inputs_(parts.tensors.size()), outputs_(parts.tensors.size()) {}

  // Sets `producers`. The parts are consistent if it returns no faults.
  Faults Run(IdVector<TensorId, NodeId>* producers) {
    producers_ = producers;
    producers_->resize(parts_.tensors.size());
    CheckTensors();
    std::set<int64_t> ids;
    for (const NodeId id : parts_.nodes.ids()) CheckNode(id, &ids);
    for (const TensorId id : parts_.tensors.ids()) CheckProducer(id);
    for (const TensorId id : parts_.outputs) {
      if (!Exists(id)) faults_.Add("an output of the graph is not one of its tensors");
    }
    if (faults_.empty()) CheckTotals();
    return std::move(faults_);
  }

 private:
  bool Exists(TensorId id) const {
    return !id.is_none() && static_cast<size_t>(id.index()) < parts_.tensors.size();
  }

  void CheckTensors() {
    std::set<int64_t> ids;
    for (const Tensor& tensor : parts_.tensors) {
      if (tensor.bytes < Bytes(0)) {
        faults_.Add("tensor \"{}\" has {} bytes", tensor.name, tensor.bytes.count());
      }
      if (!ids.insert(tensor.file_id).second) {
        faults_.Add("two tensors have the id {}; the second is \"{}\"", tensor.file_id,
                    tensor.name);
      }
    }
  }

  void CheckNode(NodeId id, std::set<int64_t>* ids) {
    PollStop();
    const Node& node = parts_.nodes[id];
    if (!ids->insert(node.file_id).second) {
      faults_.Add("two nodes have the id {}; the second is \"{}\"", node.file_id, node.name);
    }
    for (const auto* list :
         {&node.inputs, &node.outputs, &node.backward_reads, &node.gradient_passthrough}) {
      for (const TensorId tensor : *list) {
        if (!Exists(tensor)) {
          faults_.Add("node \"{}\" refers to a tensor that does not exist", node.name);
          return;
        }
      }
    }
    if (node.outputs.empty()) faults_.Add("node \"{}\" has no output", node.name);
    for (const TensorId output : node.outputs) {
      NodeId& producer = (*producers_)[output];
      if (!producer.is_none()) {
        faults_.Add("tensor \"{}\" is made twice, by \"{}\" and by \"{}\"",
                    parts_.tensors[output].name, parts_.nodes[producer].name, node.name);
      }
      producer = id;
    }
    CheckReads(node);
    if (node.forward_cost < Cost(0) || node.backward_cost < Cost(0) ||
        node.forward_workspace < Bytes(0) || node.backward_workspace < Bytes(0)) {
      faults_.Add("node \"{}\" has a negative cost or workspace", node.name);
    }
  }

  void CheckReads(const Node& node) {
    inputs_.SetList(node.inputs);
    outputs_.SetList(node.outputs);
    for (const TensorId read : node.backward_reads) {
      const bool is_own = inputs_.Has(read) || outputs_.Has(read);
      if (!is_own && parts_.backward == BackwardForm::kByNode) {
        faults_.Add(
            "the backward of node \"{}\" reads \"{}\", which is not one of its inputs or outputs",
            node.name, parts_.tensors[read].name);
      }
    }
    for (const TensorId input : node.gradient_passthrough) {
      if (!inputs_.Has(input)) {
        faults_.Add("node \"{}\" passes a gradient to \"{}\", which is not one of its inputs",
                    node.name, parts_.tensors[input].name);
      }
    }
    for (const auto& [output, input] : node.in_place) {
      if (!Exists(output) || !Exists(input) || !outputs_.Has(output) || !inputs_.Has(input)) {
        faults_.Add("node \"{}\" has an in-place pair that is not an output and an input of it",
                    node.name);
      }
    }
  }

  void CheckProducer(TensorId id) {
    const Tensor& tensor = parts_.tensors[id];
    const bool is_input = tensor.kind == TensorKind::kInput;
    const bool is_made = !(*producers_)[id].is_none();
    if (is_input && is_made) faults_.Add("input \"{}\" has a producer", tensor.name);
    if (!is_input && !is_made) faults_.Add("tensor \"{}\" has no producer", tensor.name);
  }

  void CheckTotals() {
    std::optional<int64_t> bytes = parts_.parameters.count();
    std::optional<int64_t> cost = 0;
    const auto add = [](std::optional<int64_t>* total, int64_t amount) {
      if (total->has_value()) *total = CheckedAdd(**total, amount);
    };
    add(&bytes, parts_.parameter_gradients.count());
    add(&bytes, parts_.unsharded.count());
    // The loss may create a gradient of each tensor, and each node creates another gradient of each
    // input before adding the two.
    const auto add_twice = [&](TensorId id) {
      for (int i = 0; i < 2; ++i) add(&bytes, parts_.tensors[id].bytes.count());
    };
    for (const TensorId id : parts_.tensors.ids()) add_twice(id);
    for (const Node& node : parts_.nodes) {
      for (const TensorId input : node.inputs) add_twice(input);
      add(&bytes, node.forward_workspace.count());
      add(&bytes, node.backward_workspace.count());
      add(&cost, node.forward_cost.count());
      add(&cost, node.backward_cost.count());
    }
    // Each micro-batch may need all of these bytes.
    if (bytes) bytes = CheckedMul(*bytes, parts_.micro_batches);
    const Bytes optimized = parts_.optimized.value_or(Bytes(0));
    if (!bytes || *bytes > kMaxTotalBytes.count() || optimized > kMaxTotalBytes) {
      faults_.Add("its tensors and their gradients together overflow the limit of {} bytes",
                  kMaxTotalBytes.count());
    }
    if (!cost || *cost > kMaxTotalCost.count()) {
      faults_.Add("its costs together overflow the limit of {}", kMaxTotalCost.count());
    }
  }

  const TensorGraphParts& parts_;
  IdVector<TensorId, NodeId>* producers_ = nullptr;
  Membership inputs_;   // The inputs of the current node.
  Membership outputs_;  // The outputs of the current node.
  Faults faults_;
};

// Kahn's algorithm. Always takes the first ready node, so a sorted list stays unchanged. Returns
// fewer nodes if there is a cycle.
std::vector<NodeId> TopologicalOrder(const TensorGraphParts& parts,
                                     const IdVector<TensorId, NodeId>& producers) {
  IdVector<NodeId, std::vector<NodeId>> successors(parts.nodes.size());
  IdVector<NodeId, int32_t> missing_inputs(parts.nodes.size());
  for (const NodeId id : parts.nodes.ids()) {
    for (const TensorId input : parts.nodes[id].inputs) {
      const NodeId producer = producers[input];
      if (producer.is_none()) continue;
      successors[producer].push_back(id);
      ++missing_inputs[id];
    }
  }
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  for (const NodeId id : parts.nodes.ids()) {
    if (missing_inputs[id] == 0) ready.push(id);
  }
  std::vector<NodeId> order;
  order.reserve(parts.nodes.size());
  while (!ready.empty()) {
    PollStop();
    const NodeId id = ready.top();
    ready.pop();
    order.push_back(id);
    for (const NodeId successor : successors[id]) {
      if (--missing_inputs[successor] == 0) ready.push(successor);
    }
  }
  return order;
}

Error CycleError(const TensorGraphParts& parts, const std::vector<NodeId>& order) {
  IdVector<NodeId, bool> is_sorted(parts.nodes.size());
  for (const NodeId id : order) is_sorted[id] = true;
  for (const NodeId id : parts.nodes.ids()) {
    if (!is_sorted[id]) {
      return MakeError(ErrorCode::kInvalidInput,
                       fmt::format("graph \"{}\": node \"{}\" is on a cycle or reads from one; a "
                                   "training step needs a graph without cycles",
                                   parts.name, parts.nodes[id].name));
    }
  }
  CKPLAN_CHECK(false, "an incomplete topological order lacks a node");
}

}  // namespace

Result<TensorGraph> TensorGraph::Create(TensorGraphParts parts) {
  IdVector<TensorId, NodeId> producers;
  Faults faults = TensorGraphValidator(parts).Run(&producers);
  if (!faults.empty()) return std::move(faults).ToError(fmt::format("graph \"{}\"", parts.name));
  const std::vector<NodeId> order = TopologicalOrder(parts, producers);
  if (order.size() != parts.nodes.size()) return CycleError(parts, order);

  TensorGraph graph;
  graph.name_ = std::move(parts.name);
  graph.tensors_ = std::move(parts.tensors);
  graph.outputs_ = std::move(parts.outputs);
  graph.constants_ = {parts.parameters, parts.parameter_gradients, Bytes(0), parts.unsharded};
  graph.micro_batches_ = parts.micro_batches;
  graph.backward_ = parts.backward;
  graph.optimized_ = {parts.optimized.value_or(parts.parameter_gradients),
                      std::move(parts.optimized_tensors), parts.is_training_unknown};
  for (const NodeId old : order) graph.nodes_.push_back(std::move(parts.nodes[old]));
  for (Tensor& tensor : graph.tensors_) {
    tensor.producer = NodeId();
    tensor.consumers.clear();
    if (tensor.kind == TensorKind::kInput) graph.constants_.inputs += tensor.bytes;
  }
  graph.constants_.inputs = parts.micro_batches * graph.constants_.inputs;
  for (const NodeId id : graph.nodes_.ids()) {
    PollStop();
    const Node& node = graph.nodes_[id];
    for (const TensorId output : node.outputs) graph.tensors_[output].producer = id;
    for (const TensorId input : node.inputs) {
      std::vector<NodeId>& consumers = graph.tensors_[input].consumers;
      if (consumers.empty() || consumers.back() != id) consumers.push_back(id);
    }
    graph.forward_cost_ += node.forward_cost;
    graph.backward_cost_ += node.backward_cost;
  }
  return graph;
}

TensorGraphParts PartsOf(const TensorGraph& graph) {
  return {graph.name(),
          graph.tensors(),
          graph.nodes(),
          graph.outputs(),
          graph.constants().parameters,
          graph.constants().parameter_gradients,
          graph.optimized().bytes,
          graph.constants().unsharded,
          graph.micro_batches(),
          graph.optimized().tensors,
          graph.optimized().is_unknown,
          graph.backward()};
}

TensorGraph WithBackwardByInput(const TensorGraph& graph) {
  if (graph.backward() == BackwardForm::kByInput) return graph;
  TensorGraphParts parts = PartsOf(graph);
  parts.backward = BackwardForm::kByInput;
  IdVector<TensorId, NodeId> read_by(graph.tensors().size());  // The latest reader.
  for (const NodeId id : graph.nodes().ids()) {
    PollStop();
    std::vector<TensorId> reads;
    const auto add = [&](NodeId of) {
      for (const TensorId read : graph.node(of).backward_reads) {
        if (std::exchange(read_by[read], id) != id) reads.push_back(read);
      }
    };
    add(id);
    for (const TensorId output : graph.node(id).outputs) {
      if (!graph.tensor(output).requires_grad) continue;
      for (const NodeId reader : graph.tensor(output).consumers) add(reader);
    }
    parts.nodes[id].backward_reads = std::move(reads);
  }
  return TensorGraph::Create(std::move(parts)).value();
}

Result<TensorGraph> AlignSizes(const TensorGraph& graph, int64_t alignment_bytes) {
  CKPLAN_CHECK(alignment_bytes >= 1 && alignment_bytes <= kMaxTotalBytes.count(),
               "the alignment is positive and at most kMaxTotalBytes");
  TensorGraphParts parts = PartsOf(graph);
  for (Tensor& tensor : parts.tensors) {
    tensor.bytes = Bytes(RoundUp(tensor.bytes.count(), alignment_bytes));
  }
  for (Node& node : parts.nodes) {
    node.forward_workspace = Bytes(RoundUp(node.forward_workspace.count(), alignment_bytes));
    node.backward_workspace = Bytes(RoundUp(node.backward_workspace.count(), alignment_bytes));
  }
  return TensorGraph::Create(std::move(parts));
}

Bytes SavedForBackward(const TensorGraph& graph) {
  IdVector<TensorId, char> is_saved(graph.tensors().size(), false);
  for (const Node& node : graph.nodes()) {
    for (const TensorId tensor : node.backward_reads) is_saved[tensor] = true;
  }
  Bytes saved;
  for (const TensorId tensor : graph.tensors().ids()) {
    if (is_saved[tensor]) saved += graph.tensor(tensor).bytes;
  }
  return saved;
}

namespace {

bool IsReadForward(const TensorGraph& graph, TensorId id) {
  const std::vector<TensorId>& outputs = graph.outputs();
  return !graph.tensor(id).consumers.empty() ||
         std::find(outputs.begin(), outputs.end(), id) != outputs.end();
}

}  // namespace

TensorGraph PredictionGraph(const TensorGraph& graph) {
  TensorGraphParts parts = PartsOf(graph);
  parts.parameter_gradients = Bytes(0);
  for (const TensorId id : parts.tensors.ids()) {
    Tensor& tensor = parts.tensors[id];
    tensor.requires_grad = false;
    if (tensor.kind == TensorKind::kStatistic && !IsReadForward(graph, id)) tensor.bytes = Bytes(0);
  }
  for (Node& node : parts.nodes) {
    node.backward_reads.clear();
    node.gradient_passthrough.clear();
    node.backward_cost = Cost(0);
    node.backward_workspace = Bytes(0);
  }
  // Cannot fail: the graph was valid, and sizes and costs did not grow.
  return TensorGraph::Create(std::move(parts)).value();
}

}  // namespace ckplan
