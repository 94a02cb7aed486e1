#include "lib/problem/schedule/lower_checkpoints.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/base/stop.h"

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

namespace {

class MirroredLowering {
 public:
  MirroredLowering(const TensorGraph& graph, const IdVector<NodeId, int32_t>& counts)
      : graph_(graph), counts_(counts) {
    size_t copies = 0;
    for (const NodeId id : graph.nodes().ids()) {
      first_copy_.push_back(copies);
      copies += static_cast<size_t>(counts[id]);
    }
    has_run_.resize(copies);
  }

  Schedule Run() && {
    for (const NodeId id : graph_.nodes().ids()) schedule_.steps.push_back(Step::Forward(id));
    schedule_.steps.push_back(Step::Loss());
    for (size_t i = graph_.nodes().size(); i-- > 0;) {
      PollStop();
      const NodeId id(i);
      for (const TensorId read : graph_.node(id).backward_reads) Provide(read);
      schedule_.steps.push_back(Step::Backward(id));
    }
    return std::move(schedule_);
  }

 private:
  // A copy that must run, and the number of its inputs that are available so far.
  struct Frame {
    NodeId node;
    int32_t copy = 0;
    size_t inputs_done = 0;
  };

  // Puts the copy of the tensor that copy `copy` of its reader reads on the stack, unless it has
  // run.
  void Visit(TensorId tensor, int32_t copy) {
    const NodeId producer = graph_.tensor(tensor).producer;
    if (producer.is_none()) return;
    const int32_t seen = std::min(copy, counts_[producer]);
    if (seen > 0 && !has_run_[IndexOf(producer, seen)]) stack_.push_back({producer, seen});
  }

  // Depth-first without recursion: a chain of dropped nodes may have 100,000 nodes.
  void Provide(TensorId wanted) {
    const NodeId producer = graph_.tensor(wanted).producer;
    if (producer.is_none()) return;
    Visit(wanted, counts_[producer]);
    while (!stack_.empty()) {
      Frame& frame = stack_.back();
      const NodeId id = frame.node;
      const std::vector<TensorId>& inputs = graph_.node(id).inputs;
      if (frame.inputs_done < inputs.size()) {
        const TensorId input = inputs[frame.inputs_done++];
        Visit(input, frame.copy);
        continue;
      }
      PollStop();
      has_run_[IndexOf(id, frame.copy)] = true;
      stack_.pop_back();
      schedule_.steps.push_back(Step::Forward(id));
    }
  }

  size_t IndexOf(NodeId id, int32_t copy) const {
    return first_copy_[id] + static_cast<size_t>(copy - 1);
  }

  const TensorGraph& graph_;
  const IdVector<NodeId, int32_t>& counts_;
  IdVector<NodeId, size_t> first_copy_;
  std::vector<bool> has_run_;
  std::vector<Frame> stack_;
  Schedule schedule_;
};

}  // namespace

Schedule LowerMirrorCounts(const TensorGraph& graph, const IdVector<NodeId, int32_t>& counts) {
  return MirroredLowering(graph, counts).Run();
}

}  // namespace ckplan
