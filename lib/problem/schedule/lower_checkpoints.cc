#include "lib/problem/schedule/lower_checkpoints.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace ckplan {

namespace {

// For each region, the last node whose outputs its own backward reads; none if it reads none.
std::vector<NodeId> LastReadNodes(const TensorGraph& graph,
                                  const IdVector<NodeId, int32_t>& region_of) {
  std::vector<NodeId> last(region_of.size());
  for (const NodeId node : graph.nodes().ids()) {
    const int32_t region = region_of[node];
    if (region < 0) continue;
    NodeId& latest = last[static_cast<size_t>(region)];
    for (const TensorId tensor : graph.node(node).backward_reads) {
      const NodeId producer = graph.tensor(tensor).producer;
      if (!producer.is_none() && region_of[producer] == region) latest = std::max(latest, producer);
    }
  }
  return last;
}

// The nodes that each region runs again: those up to the last one that its backward reads.
std::vector<std::vector<NodeId>> NodesRunAgain(const TensorGraph& graph,
                                               const IdVector<NodeId, int32_t>& region_of) {
  const std::vector<NodeId> last = LastReadNodes(graph, region_of);
  std::vector<std::vector<NodeId>> reruns(region_of.size());
  for (const NodeId node : graph.nodes().ids()) {
    const int32_t region = region_of[node];
    if (region >= 0 && node <= last[static_cast<size_t>(region)]) {
      reruns[static_cast<size_t>(region)].push_back(node);
    }
  }
  return reruns;
}

}  // namespace

Schedule LowerCheckpoints(const TensorGraph& graph, const IdVector<NodeId, int32_t>& region_of) {
  std::vector<std::vector<NodeId>> reruns = NodesRunAgain(graph, region_of);
  std::vector<NodeId> order;
  for (const NodeId node : graph.nodes().ids()) order.push_back(node);
  Schedule schedule;
  for (const NodeId node : order) schedule.steps.push_back(Step::Forward(node));
  schedule.steps.push_back(Step::Loss());
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    // A node whose backward reads nothing passes the gradient on and needs no tensor.
    if (region_of[*it] >= 0 && !graph.node(*it).backward_reads.empty()) {
      auto& rerun = reruns[static_cast<size_t>(region_of[*it])];
      for (const NodeId node : std::exchange(rerun, {})) {
        schedule.steps.push_back(Step::Forward(node));
      }
    }
    schedule.steps.push_back(Step::Backward(*it));
  }
  return schedule;
}

}  // namespace ckplan
