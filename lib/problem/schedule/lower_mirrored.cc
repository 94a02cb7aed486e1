#include "lib/problem/schedule/lower_mirrored.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/base/stop.h"

namespace ckplan {
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
