#include "lib/planning/algorithms/hong/layer_list.h"

#include "lib/problem/graph/vertex_graph.h"

namespace ckplan {
namespace {

void Append(LayerList* list, Bytes size, NodeId node, bool is_candidate) {
  if (is_candidate) list->candidates.push_back(list->sizes.size());
  list->sizes.push_back(size);
  list->nodes.push_back(node);
}

}  // namespace

LayerList ListLayers(const TensorGraph& graph, const VertexGraph& vertices) {
  const Chain chain = FindChain(graph, vertices);
  const Bytes inputs = graph.constants().inputs;
  LayerList list;
  // Nodes of one block are adjacent in the list; its splitting vertex comes last.
  std::vector<std::vector<NodeId>> blocks(static_cast<size_t>(chain.block_count));
  for (const NodeId v : vertices.ids()) {
    blocks[static_cast<size_t>(chain.block_of[v])].push_back(v);
  }
  // The first vertex is d_0 if it is a block of its own. Otherwise its block also contains nodes
  // that read it and need no gradient, which come before it in the list.
  const bool begins_with_vertex = inputs == Bytes(0) && !chain.splitting.empty() &&
                                  blocks.front() == std::vector{chain.splitting.front()};
  if (!begins_with_vertex) Append(&list, inputs, NodeId(), true);
  for (size_t block = 0; block < blocks.size(); ++block) {
    const NodeId end = block < chain.splitting.size() ? chain.splitting[block] : NodeId();
    for (const NodeId v : blocks[block]) {
      if (v != end) Append(&list, vertices.memory(v), v, false);
    }
    if (!end.is_none()) Append(&list, vertices.memory(end), end, true);
  }
  if (list.candidates.back() + 1 != list.sizes.size()) Append(&list, Bytes(0), NodeId(), true);
  return list;
}

IdVector<NodeId, int32_t> LayerList::Cut(const std::vector<size_t>& checkpoints,
                                         int32_t* segment_count) const {
  size_t node_count = 0;
  for (const NodeId v : nodes) node_count += v.is_none() ? 0 : 1;
  IdVector<NodeId, int32_t> segment_of(node_count);
  int32_t segment = 0;
  bool is_open = false;
  size_t next = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i].is_none()) {
      segment_of[nodes[i]] = segment;
      is_open = true;
    }
    if (next < checkpoints.size() && checkpoints[next] == i) {
      ++next;
      if (is_open) ++segment;
      is_open = false;
    }
  }
  *segment_count = segment + (is_open ? 1 : 0);
  return segment_of;
}

Cost LayerList::RecomputedTime(const VertexGraph& vertices,
                               const std::vector<size_t>& checkpoints) const {
  Cost time = vertices.total_time();
  for (const size_t i : checkpoints) {
    if (!nodes[i].is_none()) time -= vertices.time(nodes[i]);
  }
  return time;
}

}  // namespace ckplan
