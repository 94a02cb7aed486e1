#include "lib/problem/graph/chain.h"

#include <algorithm>

#include "lib/base/stop.h"

namespace ckplan {

bool NeedsGradient(const TensorGraph& graph, NodeId id) {
  const std::vector<TensorId>& outputs = graph.node(id).outputs;
  return std::any_of(outputs.begin(), outputs.end(),
                     [&](TensorId output) { return graph.tensor(output).requires_grad; });
}

Chain FindChain(const TensorGraph& graph, const VertexGraph& vertices) {
  Chain chain;
  chain.block_of.resize(vertices.size());
  // The last node that an edge from the nodes seen so far leads to.
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
