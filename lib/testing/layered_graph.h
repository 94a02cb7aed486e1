// Graphs of models with layers, for tests.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/schedule/expand.h"
#include "lib/testing/graph_text.h"

namespace ckplan {

// Expands the graph and assigns each group of `per_layer` nodes to the next of the modules
// layers.0, layers.1, ...; the remaining nodes belong to the module head. If `modules` is not
// empty, it names the submodule of each node in a layer.
inline JointGraph WithLayers(const TensorGraph& graph, size_t layers, size_t per_layer,
                             const std::vector<std::string>& modules = {}) {
  Expansion step = ExpandTensorGraph(graph);
  JointGraphParts parts = PartsOf(step.graph);
  for (const OpId id : parts.ops.ids()) {
    const Step& of = step.step_of[static_cast<size_t>(id.index())];
    if (of.kind == StepKind::kLoss) continue;
    const auto node = static_cast<size_t>(of.index);
    Operation& op = parts.ops[id];
    op.op = "aten.op.default";
    op.module = node / per_layer < layers ? fmt::format("layers.{}", node / per_layer) : "head";
    if (node / per_layer < layers && !modules.empty() && !modules[node % per_layer].empty()) {
      op.module += "." + modules[node % per_layer];
    }
  }
  return JointGraph::Create(std::move(parts)).value();
}

// Returns a chain of nodes with random sizes and costs that repeat in each layer. The backward of a
// node reads the node's inputs, and at random its result too.
inline TensorGraph RandomLayers(Rng& rng, size_t layers, size_t per_layer) {
  std::vector<TextVertex> nodes;
  std::vector<std::pair<int32_t, int32_t>> edges;
  std::vector<TextVertex> layer;
  std::vector<bool> reads_result;
  for (size_t i = 0; i < per_layer; ++i) {
    layer.push_back({"", Bytes(rng.Between(1, 20)), Cost(rng.Between(1, 10))});
    reads_result.push_back(rng.Chance(50));
  }
  for (size_t i = 0; i <= layers * per_layer; ++i) {
    nodes.push_back(layer[i % per_layer]);
    nodes.back().name = fmt::format("n{}", i);
    if (i > 0) edges.emplace_back(static_cast<int32_t>(i) - 1, static_cast<int32_t>(i));
  }
  TensorGraphParts parts = PartsOf(GraphFromVertices("layers", nodes, edges));
  for (const NodeId id : parts.nodes.ids()) {
    if (reads_result[static_cast<size_t>(id.index()) % per_layer]) continue;
    parts.nodes[id].backward_reads = parts.nodes[id].inputs;
  }
  return TensorGraph::Create(std::move(parts)).value();
}

}  // namespace ckplan
