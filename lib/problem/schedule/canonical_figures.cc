#include "lib/problem/schedule/canonical_figures.h"

#include <algorithm>
#include <vector>

namespace ckplan {
namespace {

// Terms (iii) and (iv) of Eq. 2 for each i, with L = the nodes of segments 0..i:
//   (iii) counts v if L has a predecessor of v but not v;
//   (iv)  counts p outside L if some v outside L has both p and a node of L as predecessors. No
//         edge leads to an earlier segment, so v is outside L whenever p is.
std::vector<Bytes> NeighbourMemory(const VertexGraph& graph,
                                   const IdVector<NodeId, int32_t>& segment_of,
                                   int32_t segment_count) {
  const int32_t none = segment_count;
  IdVector<NodeId, int32_t> third_from(graph.size(), none);
  IdVector<NodeId, int32_t> fourth_from(graph.size(), none);
  for (const NodeId v : graph.ids()) {
    int32_t& from = third_from[v];
    for (const NodeId p : graph.predecessors(v)) from = std::min(from, segment_of[p]);
    for (const NodeId p : graph.predecessors(v)) fourth_from[p] = std::min(fourth_from[p], from);
  }
  // The node counts for i in [from, segment_of[v]): its memory is added once and subtracted once.
  std::vector<Bytes> total(static_cast<size_t>(segment_count) + 1);
  for (const NodeId v : graph.ids()) {
    for (const int32_t from : {third_from[v], fourth_from[v]}) {
      if (from >= segment_of[v]) continue;
      total[static_cast<size_t>(from)] += graph.memory(v);
      total[static_cast<size_t>(segment_of[v])] -= graph.memory(v);
    }
  }
  for (size_t i = 1; i < total.size(); ++i) total[i] += total[i - 1];
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
  figures.segment_peaks.reserve(static_cast<size_t>(segment_count));
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
  const std::vector<Bytes> neighbours = NeighbourMemory(graph, segment_of, segment_count);
  Bytes cached;
  for (int32_t i = 0; i < segment_count; ++i) {
    const auto s = static_cast<size_t>(i);
    const Bytes needed = cached + 2 * segment_memory[s] + neighbours[s];
    figures.peak = std::max(figures.peak, needed);
    figures.segment_peaks.push_back(needed);
    cached += newly_cached[s];
  }
  return figures;
}

}  // namespace ckplan
