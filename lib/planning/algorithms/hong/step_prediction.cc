#include "lib/planning/algorithms/hong/step_prediction.h"

#include <algorithm>
#include <utility>

#include "lib/planning/algorithms/hong/checkpoint_selection.h"
#include "lib/planning/plan/plan.h"
#include "lib/problem/graph/layer_fold.h"
#include "lib/problem/graph/vertex_graph.h"

namespace ckplan {

std::vector<Bytes> PredictTrainingPhases(const LayerList& list,
                                         const std::vector<size_t>& checkpoints) {
  const std::vector<Bytes>& d = list.sizes;
  const size_t last = d.size() - 1;  // N
  std::vector<Bytes> memory(2 * last + 2, d[0]);
  Bytes kept = d[0];  // The sum of checkpoints up to h.
  for (size_t c = 1; c < checkpoints.size(); ++c) {
    const size_t h = checkpoints[c - 1];
    const size_t i = checkpoints[c];
    const Bytes buffer = *std::max_element(d.begin() + static_cast<std::ptrdiff_t>(h),
                                           d.begin() + static_cast<std::ptrdiff_t>(i));
    Bytes segment;
    for (size_t k = h + 1; k <= i; ++k) {
      segment += d[k];
      memory[k] = kept + d[k];
      memory[2 * last + 1 - k] = kept + segment + buffer;
    }
    kept += d[i];
  }
  return memory;
}

namespace {

Error NoPredictionError(std::string why) {
  return MakeError(ErrorCode::kUnsupported, std::move(why));
}

// The list d_i of the nodes or layers that the plan's algorithm planned.
class PlannedList {
 public:
  PlannedList(const TensorGraph& graph, const Plan& plan) : graph_(graph), plan_(plan) {
    IdVector<NodeId, NodeId> layer_of(graph.nodes().size());
    if (plan.request.granularity == Granularity::kLayer) {
      LayerFold fold = FoldLayers(graph);
      list_ = ListLayers(fold.graph, VertexGraph(fold.graph));
      layer_of = std::move(fold.layer_of);
    } else {
      list_ = ListLayers(graph, VertexGraph(graph));
      for (const NodeId id : graph.nodes().ids()) layer_of[id] = id;
    }
    IdVector<NodeId, size_t> position_of_layer(graph.nodes().size());
    for (size_t i = 0; i < list_.nodes.size(); ++i) {
      if (!list_.nodes[i].is_none()) position_of_layer[list_.nodes[i]] = i;
    }
    for (const NodeId id : graph.nodes().ids()) {
      position_of_.push_back(position_of_layer[layer_of[id]]);
    }
  }

  const LayerList& list() const { return list_; }
  size_t position_of(NodeId id) const { return position_of_[id]; }

  // Returns the positions of the checkpoints, ascending, including both ends.
  Result<std::vector<size_t>> Checkpoints() const {
    constexpr int32_t kNoNode = -1;
    std::vector<int32_t> segment_at(list_.sizes.size(), kNoNode);
    for (const NodeId id : graph_.nodes().ids()) {
      int32_t& segment = segment_at[position_of_[id]];
      if (segment != kNoNode && segment != plan_.decisions[id].segment) return SegmentEndError();
      segment = plan_.decisions[id].segment;
    }
    std::vector<size_t> checkpoints = {0};
    const auto add = [&](size_t position) {
      if (position != checkpoints.back()) checkpoints.push_back(position);
    };
    for (size_t i = 1; i < segment_at.size(); ++i) {
      if (segment_at[i - 1] == kNoNode || segment_at[i] == kNoNode) continue;
      if (segment_at[i] == segment_at[i - 1]) continue;
      const bool is_candidate =
          std::binary_search(list_.candidates.begin(), list_.candidates.end(), i - 1);
      if (segment_at[i] < segment_at[i - 1] || !is_candidate) return SegmentEndError();
      add(i - 1);
    }
    add(list_.sizes.size() - 1);
    CKPLAN_RETURN_IF_ERROR(CheckKept(checkpoints));
    return checkpoints;
  }

 private:
  static Error SegmentEndError() {
    return NoPredictionError("a segment does not end at a vertex that splits the graph");
  }

  // Checks that the plan keeps and recomputes what these checkpoints imply.
  Result<Done> CheckKept(const std::vector<size_t>& checkpoints) const {
    int32_t last_segment = 0;
    for (const NodeDecision& decision : plan_.decisions) {
      last_segment = std::max(last_segment, decision.segment);
    }
    for (const NodeId id : graph_.nodes().ids()) {
      const NodeDecision& decision = plan_.decisions[id];
      const bool is_last = decision.segment == last_segment;
      const bool is_checkpoint =
          std::binary_search(checkpoints.begin(), checkpoints.end(), position_of_[id]);
      const int32_t allowed_runs = is_last || (is_checkpoint && IsReadLater(id)) ? 0 : 1;
      const bool is_extra = decision.action == NodeAction::kKeep && !is_last && !is_checkpoint &&
                            NeedsGradient(graph_, id);
      if (decision.recompute_count > allowed_runs || is_extra) {
        return NoPredictionError("the plan does not keep exactly the end of each segment");
      }
    }
    return Done{};
  }

  // Tells whether a node in a later segment reads one of the node's outputs.
  bool IsReadLater(NodeId id) const {
    for (const TensorId output : graph_.node(id).outputs) {
      for (const NodeId reader : graph_.tensor(output).consumers) {
        if (plan_.decisions[reader].segment > plan_.decisions[id].segment) return true;
      }
    }
    return false;
  }

  const TensorGraph& graph_;
  const Plan& plan_;
  LayerList list_;
  IdVector<NodeId, size_t> position_of_;  // The position of each node in the list.
};

}  // namespace

Result<std::vector<std::optional<Bytes>>> PredictSteps(const TensorGraph& graph, const Plan& plan) {
  const PlannedList planned(graph, plan);
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<size_t> checkpoints, planned.Checkpoints());
  const std::vector<Bytes> phases = PredictTrainingPhases(planned.list(), checkpoints);
  const std::vector<Step>& steps = plan.schedule.steps;
  std::vector<std::optional<size_t>> last_step(phases.size());
  bool is_forward = true;
  for (size_t k = 0; k < steps.size(); ++k) {
    if (steps[k].kind == StepKind::kLoss) is_forward = false;
    const bool is_first_run = steps[k].kind == StepKind::kForward && is_forward;
    if (!is_first_run && steps[k].kind != StepKind::kBackward) continue;
    const size_t i = planned.position_of(steps[k].node());
    last_step[is_first_run ? i : phases.size() - 1 - i] = k;
  }
  std::vector<std::optional<Bytes>> at_step(steps.size());
  for (size_t phase = 0; phase < phases.size(); ++phase) {
    if (last_step[phase]) at_step[*last_step[phase]] = phases[phase] - graph.constants().inputs;
  }
  return at_step;
}

}  // namespace ckplan
