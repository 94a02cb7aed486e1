#include "lib/planning/algorithms/feng/two_terminal.h"

#include <algorithm>
#include <utility>

#include "lib/problem/graph/vertex_graph.h"

namespace ckplan {
namespace {

bool Reads(const Node& node, TensorId tensor) {
  return std::find(node.backward_reads.begin(), node.backward_reads.end(), tensor) !=
         node.backward_reads.end();
}

// Tells whether `reader` may overwrite `tensor`: no other node needs it, and neither node's
// backward reads it.
bool IsOverwritten(const TensorGraph& graph, TensorId tensor, NodeId reader) {
  const NodeId producer = graph.tensor(tensor).producer;
  const std::vector<TensorId>& outputs = graph.outputs();
  return !producer.is_none() && NeedsGradient(graph, producer) && NeedsGradient(graph, reader) &&
         graph.tensor(tensor).consumers.size() == 1 && graph.node(producer).outputs[0] == tensor &&
         !Reads(graph.node(producer), tensor) && !Reads(graph.node(reader), tensor) &&
         std::find(outputs.begin(), outputs.end(), tensor) == outputs.end();
}

class TwoTerminalBuilder {
 public:
  TwoTerminalBuilder(const TensorGraph& graph, const VertexGraph& vertices)
      : graph_(graph), vertices_(vertices), into_(vertices.size()) {}

  TwoTerminalGraph Build() && {
    FoldInPlace();
    NumberVertices();
    ConnectNodes();
    TieLooseEnds();
    for (TwoTerminalGraph::Vertex& vertex : result_.vertices) {
      SortOnce(vertex.successors);
      SortOnce(vertex.predecessors);
    }
    return std::move(result_);
  }

 private:
  // Sets into_[v] to the node that overwrites v's output, if any. Only the first output of v
  // counts: the others are statistics, or have their own readers, which would have to read the last
  // node.
  void FoldInPlace() {
    for (const NodeId id : graph_.nodes().ids()) {
      for (const InPlacePair& pair : graph_.node(id).in_place) {
        if (!IsOverwritten(graph_, pair.input, id)) continue;
        const NodeId producer = graph_.tensor(pair.input).producer;
        if (vertices_.successors(producer).size() != 1) continue;
        into_[producer] = id;
        overwritten_.push_back(pair.input);
        break;
      }
    }
  }

  // Numbers each vertex by the position of its last node. Position 0 is reserved for a virtual
  // source, the last one for a virtual target.
  void NumberVertices() {
    vertex_of_.resize(vertices_.size());
    result_.vertices.push_back({});
    for (const NodeId id : vertices_.ids()) {
      if (NeedsGradient(graph_, id) && into_[id].is_none()) {
        vertex_of_[id] = result_.vertices.push_back({});
      }
    }
    result_.vertices.push_back({});
    for (auto i = static_cast<int32_t>(vertices_.size()) - 1; i >= 0; --i) {
      const NodeId id(i);
      if (!into_[id].is_none()) vertex_of_[id] = vertex_of_[into_[id]];
    }
    for (const NodeId id : vertices_.ids()) {
      if (vertex_of_[id].is_none()) continue;
      result_.vertices[vertex_of_[id]].nodes.push_back(id);
      result_.vertices[vertex_of_[id]].memory += vertices_.memory(id);
    }
    for (const TensorId tensor : overwritten_) {
      const NodeId producer = graph_.tensor(tensor).producer;
      result_.vertices[vertex_of_[producer]].memory -= graph_.tensor(tensor).bytes;
    }
  }

  void ConnectNodes() {
    for (const NodeId id : vertices_.ids()) {
      bool is_read = false;
      for (const NodeId reader : vertices_.successors(id)) {
        if (vertex_of_[reader].is_none()) continue;
        is_read = true;
        if (!vertex_of_[id].is_none() && vertex_of_[id] != vertex_of_[reader]) {
          Connect(vertex_of_[id], vertex_of_[reader]);
        }
      }
      if (is_read && vertex_of_[id].is_none()) result_.memory_aside += vertices_.memory(id);
    }
  }

  void Connect(VertexId from, VertexId to) {
    result_.vertices[from].successors.push_back(to);
    result_.vertices[to].predecessors.push_back(from);
  }

  // Returns the vertices that no edge skips, in order.
  std::vector<VertexId> Splitting() const {
    std::vector<VertexId> splitting;
    VertexId furthest;
    for (VertexId v(1); v < result_.target(); ++v) {
      if (furthest <= v) splitting.push_back(v);
      for (const VertexId w : result_.vertices[v].successors) furthest = std::max(furthest, w);
    }
    return splitting;
  }

  void TieLooseEnds() {
    const std::vector<VertexId> splitting = Splitting();
    const VertexId source = result_.source();
    const VertexId target = result_.target();
    for (VertexId v(1); v < target; ++v) {
      if (result_.vertices[v].predecessors.empty()) {
        const auto it = std::lower_bound(splitting.begin(), splitting.end(), v);
        Connect(it - splitting.begin() < 2 ? source : *std::prev(it), v);
      }
    }
    for (VertexId v(1); v < target; ++v) {
      if (result_.vertices[v].successors.empty()) {
        const auto it = std::upper_bound(splitting.begin(), splitting.end(), v);
        Connect(v, splitting.end() - it < 2 ? target : *it);
      }
    }
    if (result_.vertices.size() == 2) Connect(source, target);
    DropVirtualEnds();
  }

  // Removes a virtual end that joins only one vertex, unless it represents the batch. A one-vertex
  // graph keeps a virtual end, because the vertex cannot be both ends.
  void DropVirtualEnds() {
    size_t rest = result_.vertices.size();
    const std::vector<VertexId>& first = result_.vertices[result_.source()].successors;
    const bool drops_source = rest > 2 && first.size() == 1 && !ReadsInput(first.front());
    rest -= drops_source ? 1 : 0;
    const bool drops_target =
        rest > 2 && result_.vertices[result_.target()].predecessors.size() == 1;
    Drop(drops_source, drops_target);
  }

  bool ReadsInput(VertexId v) const {
    for (const NodeId id : result_.vertices[v].nodes) {
      for (const TensorId input : graph_.node(id).inputs) {
        if (graph_.is_input(input)) return true;
      }
    }
    return false;
  }

  void Drop(bool first, bool last) {
    IdVector<VertexId, TwoTerminalGraph::Vertex> rest;
    const VertexId begin(first ? 1 : 0);
    const VertexId end(result_.target().index() + (last ? 0 : 1));
    for (VertexId v = begin; v < end; ++v) {
      TwoTerminalGraph::Vertex vertex = std::move(result_.vertices[v]);
      Renumber(begin, end, vertex.successors);
      Renumber(begin, end, vertex.predecessors);
      rest.push_back(std::move(vertex));
    }
    result_.vertices = std::move(rest);
  }

  static void Renumber(VertexId begin, VertexId end, std::vector<VertexId>& list) {
    std::vector<VertexId> renumbered;
    for (const VertexId v : list) {
      if (v >= begin && v < end) renumbered.push_back(VertexId(v.index() - begin.index()));
    }
    list = std::move(renumbered);
  }

  static void SortOnce(std::vector<VertexId>& list) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }

  const TensorGraph& graph_;
  const VertexGraph& vertices_;
  IdVector<NodeId, NodeId> into_;
  std::vector<TensorId> overwritten_;
  IdVector<NodeId, VertexId> vertex_of_;
  TwoTerminalGraph result_;
};

}  // namespace

TwoTerminalGraph MakeTwoTerminal(const TensorGraph& graph, const VertexGraph& vertices) {
  return TwoTerminalBuilder(graph, vertices).Build();
}

}  // namespace ckplan
