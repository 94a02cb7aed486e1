#include "lib/algorithms/kusumoto/canonical.h"

#include <algorithm>

namespace ckplan {
namespace {

// Terms (iii) and (iv) of Eq. 2 for L = the nodes of segments 0..i.
Bytes NeighbourMemory(const VertexGraph& graph, const IdVector<NodeId, int32_t>& segment_of,
                      int32_t i) {
  Bytes total;
  IdVector<NodeId, bool> is_fourth(graph.size());
  for (const NodeId v : graph.ids()) {
    if (segment_of[v] <= i) continue;
    const auto predecessors = graph.predecessors(v);
    const bool reads_l = std::any_of(predecessors.begin(), predecessors.end(),
                                     [&](NodeId p) { return segment_of[p] <= i; });
    if (!reads_l) continue;
    total += graph.memory(v);
    for (const NodeId p : predecessors) {
      if (segment_of[p] > i) is_fourth[p] = true;
    }
  }
  for (const NodeId v : graph.ids()) {
    if (is_fourth[v]) total += graph.memory(v);
  }
  return total;
}

}  // namespace

CanonicalFigures EvaluateCanonical(const VertexGraph& graph,
                                   const IdVector<NodeId, int32_t>& segment_of,
                                   int32_t segment_count) {
  // v is in the boundary of L_i for segment_of[v] <= i < (latest segment that reads v).
  std::vector<Bytes> segment_memory(static_cast<size_t>(segment_count));
  std::vector<Bytes> newly_cached(static_cast<size_t>(segment_count));
  CanonicalFigures figures;
  for (const NodeId v : graph.ids()) {
    const auto segment = static_cast<size_t>(segment_of[v]);
    segment_memory[segment] += graph.memory(v);
    const auto successors = graph.successors(v);
    const bool is_cached = std::any_of(successors.begin(), successors.end(),
                                       [&](NodeId w) { return segment_of[w] > segment_of[v]; });
    if (is_cached) {
      newly_cached[segment] += graph.memory(v);
    } else {
      figures.overhead += graph.time(v);
    }
  }
  Bytes cached;
  for (int32_t i = 0; i < segment_count; ++i) {
    const auto s = static_cast<size_t>(i);
    const Bytes needed = cached + 2 * segment_memory[s] + NeighbourMemory(graph, segment_of, i);
    figures.peak = std::max(figures.peak, needed);
    cached += newly_cached[s];
  }
  return figures;
}

}  // namespace ckplan
