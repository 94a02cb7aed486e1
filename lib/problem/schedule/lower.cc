#include "lib/problem/schedule/lower.h"

#include <algorithm>
#include <utility>

#include "lib/base/stop.h"
#include "lib/problem/schedule/lower_recursive.h"

namespace ckplan {
namespace {

std::vector<NodeId> GraphOrder(const TensorGraph& graph) {
  std::vector<NodeId> order;
  order.reserve(graph.nodes().size());
  for (const NodeId id : graph.nodes().ids()) order.push_back(id);
  return order;
}

// The nodes segment by segment, in the graph's own order within each.
std::vector<NodeId> SegmentOrder(const TensorGraph& graph, const LowerSetSequence& sequence) {
  std::vector<NodeId> order = GraphOrder(graph);
  std::stable_sort(order.begin(), order.end(), [&](NodeId a, NodeId b) {
    return sequence.segment_of[a] < sequence.segment_of[b];
  });
  return order;
}

class OnDemandLowering {
 public:
  OnDemandLowering(const TensorGraph& graph, const IdVector<NodeId, bool>& is_kept)
      : graph_(graph), is_present_(is_kept) {}

  Schedule Run(const std::vector<NodeId>& order) && {
    schedule_.steps.reserve(3 * order.size() + 1);
    for (const NodeId id : order) schedule_.steps.push_back(Step::Forward(id));
    schedule_.steps.push_back(Step::Loss());
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      PollStop();
      for (const TensorId read : graph_.node(*it).backward_reads) Provide(read);
      schedule_.steps.push_back(Step::Backward(*it));
    }
    return std::move(schedule_);
  }

 private:
  // A node that must run for a wanted tensor, and the number of its inputs that are available so
  // far.
  struct Frame {
    NodeId node;
    size_t inputs_done = 0;
  };

  void Visit(TensorId tensor) {
    const NodeId producer = graph_.tensor(tensor).producer;
    if (!producer.is_none() && !is_present_[producer]) stack_.push_back({producer});
  }

  // Depth-first without recursion: a chain of dropped nodes may have 100,000 nodes.
  void Provide(TensorId wanted) {
    Visit(wanted);
    while (!stack_.empty()) {
      Frame& frame = stack_.back();
      const NodeId id = frame.node;
      const std::vector<TensorId>& inputs = graph_.node(id).inputs;
      if (frame.inputs_done < inputs.size()) {
        Visit(inputs[frame.inputs_done++]);
        continue;
      }
      PollStop();
      stack_.pop_back();
      schedule_.steps.push_back(Step::Forward(id));
      is_present_[id] = true;
    }
  }

  const TensorGraph& graph_;
  IdVector<NodeId, bool> is_present_;
  std::vector<Frame> stack_;
  Schedule schedule_;
};

}  // namespace

IdVector<NodeId, bool> KeptBy(const TensorGraph& graph, const LowerSetSequence& sequence) {
  IdVector<NodeId, bool> is_kept(graph.nodes().size());
  for (const NodeId id : graph.nodes().ids()) {
    const int32_t segment = sequence.segment_of[id];
    if (segment == sequence.segment_count - 1) is_kept[id] = true;
    for (const TensorId input : graph.node(id).inputs) {
      const NodeId producer = graph.tensor(input).producer;
      if (!producer.is_none() && sequence.segment_of[producer] < segment) is_kept[producer] = true;
    }
  }
  return is_kept;
}

Schedule LowerStrategy(const TensorGraph& graph, const Strategy& strategy) {
  if (const auto* schedule = std::get_if<Schedule>(&strategy)) return *schedule;
  if (const auto* kept = std::get_if<KeptSet>(&strategy)) {
    return OnDemandLowering(graph, kept->is_kept).Run(GraphOrder(graph));
  }
  if (const auto* split = std::get_if<RecursiveSplit>(&strategy)) {
    return LowerRecursiveSplit(graph, *split);
  }
  const auto& sequence = std::get<LowerSetSequence>(strategy);
  return OnDemandLowering(graph, KeptBy(graph, sequence)).Run(SegmentOrder(graph, sequence));
}

IdVector<NodeId, int32_t> SegmentsOf(const TensorGraph& graph, const Strategy& strategy) {
  if (const auto* sequence = std::get_if<LowerSetSequence>(&strategy)) return sequence->segment_of;
  if (const auto* split = std::get_if<RecursiveSplit>(&strategy)) return OutermostRanges(*split);
  return IdVector<NodeId, int32_t>(graph.nodes().size());
}

}  // namespace ckplan
