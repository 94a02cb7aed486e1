#include "lib/problem/schedule/unfold.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/base/check.h"

namespace ckplan {
namespace {

template <typename T>
IdVector<NodeId, T> PerNode(const LayerFold& fold, const IdVector<NodeId, T>& per_layer) {
  IdVector<NodeId, T> per_node;
  for (const NodeId layer : fold.layer_of) per_node.push_back(per_layer[layer]);
  return per_node;
}

KeptSet UnfoldKept(const LayerFold& fold, const KeptSet& kept) {
  if (std::all_of(kept.is_kept.begin(), kept.is_kept.end(), [](bool is_kept) { return is_kept; })) {
    return {IdVector<NodeId, bool>(fold.layer_of.size(), true)};
  }
  IdVector<NodeId, bool> is_kept = PerNode(fold, kept.is_kept);
  for (const NodeId node : is_kept.ids()) {
    is_kept[node] = is_kept[node] && fold.makes_result[node];
  }
  return {std::move(is_kept)};
}

Schedule UnfoldSchedule(const LayerFold& fold, const Schedule& schedule) {
  CKPLAN_CHECK(schedule.frees == FreePolicy::kLiveness, "solvers leave frees to liveness");
  IdVector<NodeId, std::vector<NodeId>> nodes_of(fold.graph.nodes().size());
  for (const NodeId node : fold.layer_of.ids()) nodes_of[fold.layer_of[node]].push_back(node);
  Schedule unfolded;
  for (const Step& step : schedule.steps) {
    if (step.kind == StepKind::kLoss) {
      unfolded.steps.push_back(step);
      continue;
    }
    const std::vector<NodeId>& nodes = nodes_of[step.node()];
    if (step.kind == StepKind::kForward) {
      for (const NodeId node : nodes) unfolded.steps.push_back(Step::Forward(node));
    } else {
      for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
        unfolded.steps.push_back(Step::Backward(*it));
      }
    }
  }
  return unfolded;
}

}  // namespace

Strategy Unfold(const LayerFold& fold, const Strategy& strategy) {
  if (const auto* schedule = std::get_if<Schedule>(&strategy)) {
    return UnfoldSchedule(fold, *schedule);
  }
  if (const auto* kept = std::get_if<KeptSet>(&strategy)) return UnfoldKept(fold, *kept);
  if (const auto* split = std::get_if<RecursiveSplit>(&strategy)) {
    return RecursiveSplit{PerNode(fold, split->block_of), split->block_count,
                          split->kept_per_level};
  }
  const auto& sequence = std::get<LowerSetSequence>(strategy);
  return LowerSetSequence{PerNode(fold, sequence.segment_of), sequence.segment_count};
}

}  // namespace ckplan
