#include "lib/testing/random_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/testing/graph_text.h"

namespace ckplan {
namespace {

// File ids differ from positions so that tests detect code that confuses them.
int64_t TensorFileId(size_t position) { return static_cast<int64_t>(position) * 3 + 5; }
int64_t NodeFileId(size_t position) { return static_cast<int64_t>(position) * 7 + 2; }

class RandomGraphBuilder {
 public:
  RandomGraphBuilder(Rng* rng, const RandomGraphOptions& options) : rng_(*rng), options_(options) {}

  TensorGraph Build() {
    parts_.name = "random";
    parts_.parameters = RandomBytes();
    parts_.parameter_gradients = RandomBytes();
    for (int i = 0; i < options_.graph_inputs; ++i) {
      const Bytes bytes = RandomBytes();
      AddTensor(TensorKind::kInput, bytes, rng_.Chance(options_.input_gradient));
    }
    for (int i = 0; i < options_.nodes; ++i) AddNode();
    ChooseGraphOutputs();
    return TensorGraph::Create(std::move(parts_)).value();
  }

 private:
  Bytes RandomBytes() { return Bytes(rng_.Between(0, options_.max_bytes)); }

  TensorId AddTensor(TensorKind kind, Bytes bytes, bool requires_grad) {
    const size_t position = parts_.tensors.size();
    Tensor tensor;
    tensor.file_id = TensorFileId(position);
    tensor.name = fmt::format("t{}", position);
    tensor.bytes = bytes;
    tensor.kind = kind;
    tensor.requires_grad = requires_grad;
    is_read_.push_back(false);
    return parts_.tensors.push_back(tensor);
  }

  // Takes half of the picks from the last few tensors, so that graphs are deep and not only wide.
  TensorId PickTensor() {
    const auto count = static_cast<int64_t>(parts_.tensors.size());
    const int64_t low = rng_.Chance(50) ? std::max<int64_t>(0, count - 4) : 0;
    return TensorId(static_cast<size_t>(rng_.Between(low, count - 1)));
  }

  void AddNode() {
    Node node;
    node.file_id = NodeFileId(parts_.nodes.size());
    node.name = fmt::format("op{}", parts_.nodes.size());
    node.op = rng_.Chance(50) ? "Conv" : "Relu";
    ChooseInputs(&node);
    ChooseOutputs(&node);
    ChooseReads(&node);
    ChooseSharing(&node);
    node.forward_cost = Cost(rng_.Between(0, options_.max_cost));
    node.backward_cost = Cost(rng_.Between(0, 2 * options_.max_cost));
    if (rng_.Chance(options_.workspace)) node.forward_workspace = RandomBytes();
    if (rng_.Chance(options_.workspace)) node.backward_workspace = RandomBytes();
    node.is_random = rng_.Chance(options_.random_node);
    if (options_.shared_parameter > 0 && rng_.Chance(options_.shared_parameter)) {
      node.shared_parameters.push_back(static_cast<int32_t>(rng_.Between(0, 1)));
    }
    parts_.nodes.push_back(std::move(node));
  }

  void ChooseInputs(Node* node) {
    if (parts_.tensors.empty()) return;
    const int64_t count = rng_.Between(1, options_.max_node_inputs);
    for (int64_t i = 0; i < count; ++i) {
      const TensorId pick = PickTensor();
      if (std::find(node->inputs.begin(), node->inputs.end(), pick) != node->inputs.end()) continue;
      node->inputs.push_back(pick);
      is_read_[pick] = true;
    }
    if (rng_.Chance(options_.duplicate_input)) node->inputs.push_back(node->inputs.front());
  }

  void ChooseOutputs(Node* node) {
    const int outputs = rng_.Chance(options_.second_output) ? 2 : 1;
    for (int i = 0; i < outputs; ++i) {
      Bytes bytes = RandomBytes();
      if (!node->inputs.empty() && rng_.Chance(options_.equal_bytes)) {
        bytes = parts_.tensors[AnyOf(node->inputs)].bytes;
      }
      // Independent of the inputs: the output of a node with parameters always needs a gradient.
      const bool requires_grad = !rng_.Chance(options_.no_gradient);
      node->outputs.push_back(AddTensor(TensorKind::kActivation, bytes, requires_grad));
    }
    if (rng_.Chance(options_.statistic)) {
      node->outputs.push_back(AddTensor(TensorKind::kStatistic, RandomBytes(), false));
    }
  }

  void ChooseReads(Node* node) {
    for (const auto* list : {&node->inputs, &node->outputs}) {
      for (const TensorId tensor : *list) {
        const auto& reads = node->backward_reads;
        const bool is_new = std::find(reads.begin(), reads.end(), tensor) == reads.end();
        if (is_new && rng_.Chance(50)) node->backward_reads.push_back(tensor);
      }
    }
  }

  void ChooseSharing(Node* node) {
    if (node->inputs.empty()) return;
    for (int i = 0; i < 2; ++i) {
      const InPlacePair pair{AnyOf(node->outputs), AnyOf(node->inputs)};
      const auto& pairs = node->in_place;
      if (std::find(pairs.begin(), pairs.end(), pair) == pairs.end() &&
          rng_.Chance(options_.in_place)) {
        node->in_place.push_back(pair);
      }
    }
    for (const TensorId input : node->inputs) {
      const auto& passes = node->gradient_passthrough;
      if (std::find(passes.begin(), passes.end(), input) == passes.end() &&
          rng_.Chance(options_.gradient_passthrough)) {
        node->gradient_passthrough.push_back(input);
      }
    }
  }

  TensorId AnyOf(const std::vector<TensorId>& list) {
    return list[static_cast<size_t>(rng_.Between(0, static_cast<int64_t>(list.size()) - 1))];
  }

  void ChooseGraphOutputs() {
    TensorId last;
    for (const TensorId id : parts_.tensors.ids()) {
      if (parts_.tensors[id].kind != TensorKind::kActivation) continue;
      last = id;
      const bool is_output =
          is_read_[id] ? rng_.Chance(options_.extra_output) : !rng_.Chance(options_.dead_end);
      if (is_output) parts_.outputs.push_back(id);
    }
    if (parts_.outputs.empty()) parts_.outputs.push_back(last);
  }

  Rng& rng_;
  const RandomGraphOptions& options_;
  TensorGraphParts parts_;
  IdVector<TensorId, bool> is_read_;
};

}  // namespace

TensorGraph RandomTensorGraph(Rng& rng, const RandomGraphOptions& options) {
  CKPLAN_CHECK(options.nodes >= 1 && options.max_node_inputs >= 1,
               "a random graph has at least one node, and nodes have inputs");
  return RandomGraphBuilder(&rng, options).Build();
}

TensorGraph RandomDag(Rng& rng, int nodes, int edge_percent, int64_t max_bytes, int64_t max_cost) {
  std::vector<TextVertex> vertices;
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (int32_t v = 0; v < nodes; ++v) {
    const Bytes bytes(rng.Between(1, max_bytes));
    vertices.push_back({fmt::format("n{}", v), bytes, Cost(rng.Between(1, max_cost))});
    for (int32_t u = 0; u < v; ++u) {
      if (rng.Chance(edge_percent)) edges.emplace_back(u, v);
    }
  }
  return GraphFromVertices("random", vertices, edges);
}

TensorGraph RandomModelGraph(Rng& rng) {
  RandomGraphOptions options;
  options.nodes = static_cast<int>(rng.Between(1, 12));
  options.shared_parameter = 20;
  TensorGraphParts parts = PartsOf(RandomTensorGraph(rng, options));
  for (Node& node : parts.nodes) {
    std::erase_if(node.in_place, [&](const InPlacePair& pair) {
      return pair.output != node.in_place.front().output;
    });
  }
  return TensorGraph::Create(std::move(parts)).value();
}

}  // namespace ckplan
