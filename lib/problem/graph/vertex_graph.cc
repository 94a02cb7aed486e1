#include "lib/problem/graph/vertex_graph.h"

#include <algorithm>
#include <utility>

#include "lib/base/stop.h"

namespace ckplan {

VertexGraph::VertexGraph(const TensorGraph& graph) {
  IdVector<NodeId, std::vector<NodeId>> successors(graph.nodes().size());
  IdVector<NodeId, std::vector<NodeId>> predecessors(graph.nodes().size());
  for (const NodeId id : graph.nodes().ids()) {
    PollStop();
    const Node& node = graph.node(id);
    Bytes memory;
    for (const TensorId output : node.outputs) memory += graph.tensor(output).bytes;
    memory_.push_back(memory);
    time_.push_back(node.forward_cost);
    total_memory_ += memory;
    total_time_ += node.forward_cost;
    for (const TensorId input : node.inputs) {
      const NodeId producer = graph.tensor(input).producer;
      if (!producer.is_none()) predecessors[id].push_back(producer);
    }
    std::sort(predecessors[id].begin(), predecessors[id].end());
    const auto end = std::unique(predecessors[id].begin(), predecessors[id].end());
    predecessors[id].erase(end, predecessors[id].end());
    for (const NodeId producer : predecessors[id]) successors[producer].push_back(id);
  }
  successors_ = Pack(successors);
  predecessors_ = Pack(predecessors);
}

VertexGraph::Adjacency VertexGraph::Pack(const IdVector<NodeId, std::vector<NodeId>>& lists) {
  Adjacency adjacency;
  adjacency.starts.push_back(0);
  for (const std::vector<NodeId>& list : lists) {
    adjacency.targets.insert(adjacency.targets.end(), list.begin(), list.end());
    adjacency.starts.push_back(adjacency.targets.size());
  }
  return adjacency;
}

VertexGraph VertexGraph::WithTimes(IdVector<NodeId, Cost> time) const {
  VertexGraph graph = *this;
  graph.time_ = std::move(time);
  graph.total_time_ = Cost(0);
  for (const Cost cost : graph.time_) graph.total_time_ += cost;
  return graph;
}

bool NeedsGradient(const TensorGraph& graph, NodeId id) {
  const std::vector<TensorId>& outputs = graph.node(id).outputs;
  return std::any_of(outputs.begin(), outputs.end(),
                     [&](TensorId output) { return graph.tensor(output).requires_grad; });
}

Chain FindChain(const TensorGraph& graph, const VertexGraph& vertices) {
  Chain chain;
  chain.block_of.resize(vertices.size());
  // The last successor of the nodes seen so far.
  NodeId furthest;
  int32_t block = 0;
  bool is_block_open = false;
  for (const NodeId v : vertices.ids()) {
    PollStop();
    if (!NeedsGradient(graph, v)) {
      for (const NodeId p : vertices.predecessors(v)) {
        chain.block_of[v] = std::max(chain.block_of[v], chain.block_of[p]);
      }
      continue;
    }
    chain.block_of[v] = block;
    is_block_open = true;
    const bool is_splitting = furthest <= v;
    for (const NodeId w : vertices.successors(v)) furthest = std::max(furthest, w);
    if (!is_splitting) continue;
    chain.splitting.push_back(v);
    ++block;
    is_block_open = false;
  }
  chain.block_count = block + (is_block_open ? 1 : 0);
  if (chain.block_count == 0 && vertices.size() > 0) chain.block_count = 1;
  return chain;
}

}  // namespace ckplan
