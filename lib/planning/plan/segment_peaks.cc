#include "lib/planning/plan/segment_peaks.h"

#include <algorithm>
#include <cstdint>

#include "lib/problem/graph/layer_fold.h"
#include "lib/problem/graph/vertex_graph.h"
#include "lib/problem/schedule/canonical_strategy.h"

namespace ckplan {
namespace {

std::vector<Bytes> PeaksOf(const TensorGraph& graph, const IdVector<NodeId, int32_t>& segment_of) {
  int32_t last = 0;
  for (const int32_t segment : segment_of) last = std::max(last, segment);
  if (static_cast<size_t>(last) >= segment_of.size()) return {};
  return EvaluateCanonical(VertexGraph(graph), segment_of, last + 1).segment_peaks;
}

}  // namespace

std::vector<Bytes> SegmentPeaksOf(const TensorGraph& graph, const Plan& plan) {
  const std::optional<Decisions>& decisions = plan.request.decisions;
  const bool has_lower_sets = decisions && decisions->form == Decisions::Form::kLowerSets;
  if (!has_lower_sets || plan.decisions.size() != graph.nodes().size()) return {};
  IdVector<NodeId, int32_t> segment_of;
  for (const NodeDecision& decision : plan.decisions) segment_of.push_back(decision.segment);
  if (plan.request.granularity == Granularity::kNode) return PeaksOf(graph, segment_of);
  const LayerFold fold = FoldLayers(graph);
  IdVector<NodeId, int32_t> of_layers(fold.graph.nodes().size());
  for (const NodeId id : graph.nodes().ids()) of_layers[fold.layer_of[id]] = segment_of[id];
  return PeaksOf(fold.graph, of_layers);
}

}  // namespace ckplan
