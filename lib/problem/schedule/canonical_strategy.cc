#include "lib/problem/schedule/canonical_strategy.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "lib/base/stop.h"
#include "lib/problem/schedule/gradients.h"
#include "lib/problem/schedule/lower.h"

namespace ckplan {

namespace {

// Returns terms (iii) and (iv) of Eq. 2 for each i, with L = the nodes of segments 0..i:
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
  // The node counts for i in [from, segment_of[v]); prefix sums follow below.
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

namespace {

// Finds the tensors whose gradient a step creates, if steps are by input.
IdVector<TensorId, bool> FindGradients(const TensorGraph& graph) {
  struct Sink {
    IdVector<TensorId, bool> is_made;
    void Allocate(int32_t /*buffer*/, TensorId gradient_of) { is_made[gradient_of] = true; }
    void Release(int32_t /*buffer*/) {}
  };
  Sink sink{IdVector<TensorId, bool>(graph.tensors().size())};
  if (graph.backward() == BackwardForm::kByNode) return std::move(sink.is_made);
  GradientReplay<Sink> replay(graph, &sink);
  replay.Loss();
  for (size_t i = graph.nodes().size(); i-- > 0;) replay.Backward(NodeId(i));
  return std::move(sink.is_made);
}

// Schedules a sequence of lower sets, segment by segment.
class SegmentwiseLowering {
 public:
  SegmentwiseLowering(const TensorGraph& graph, const LowerSetSequence& sequence)
      : graph_(graph),
        is_kept_(KeptBy(graph, sequence)),
        is_dropped_output_(graph.tensors().size()),
        freed_with_(sequence.segment_of),
        gradient_freed_with_(sequence.segment_of),
        segments_(static_cast<size_t>(sequence.segment_count)),
        has_gradient_(FindGradients(graph)) {
    for (const NodeId id : graph.nodes().ids()) {
      segments_[static_cast<size_t>(sequence.segment_of[id])].push_back(id);
    }
    if (graph.backward() == BackwardForm::kByInput) HoldForEarlierSegments(sequence);
    is_needed_ = FindNeeded();
    for (const TensorId output : graph.outputs()) {
      const NodeId producer = graph.tensor(output).producer;
      if (!producer.is_none()) is_dropped_output_[output] = !is_kept_[producer];
    }
  }

  Schedule Run() && {
    schedule_.frees = FreePolicy::kExplicit;
    for (const std::vector<NodeId>& segment : segments_) RunForward(segment);
    schedule_.steps.push_back(Step::Loss());
    for (const TensorId id : graph_.tensors().ids()) {
      if (is_dropped_output_[id]) schedule_.steps.push_back(Step::Free(id));
    }
    for (size_t i = segments_.size(); i-- > 0;) RunBackward(i);
    return std::move(schedule_);
  }

 private:
  // Finds terms (iii) and (iv) of Eq. 2: gradients and results that backward steps of earlier
  // segments read.
  void HoldForEarlierSegments(const LowerSetSequence& sequence) {
    const auto lower = [](int32_t* segment, int32_t to) { *segment = std::min(*segment, to); };
    for (const NodeId v : graph_.nodes().ids()) {
      int32_t first = sequence.segment_of[v];
      const std::vector<TensorId>& inputs = graph_.node(v).inputs;
      for (const TensorId input : inputs) {
        const NodeId p = graph_.tensor(input).producer;
        if (!p.is_none()) lower(&first, sequence.segment_of[p]);
      }
      gradient_freed_with_[v] = first;
      for (const TensorId input : inputs) {
        const NodeId p = graph_.tensor(input).producer;
        if (!p.is_none()) lower(&freed_with_[p], first);
      }
    }
    // The authors' program does not hold other results until then, but recomputes them for each
    // step that reads them: those that a backward reads of its own operation, such as ReLU's.
    own_results_.resize(graph_.nodes().size());
    for (const NodeId v : graph_.nodes().ids()) {
      for (const TensorId read : graph_.node(v).backward_reads) {
        const NodeId producer = graph_.tensor(read).producer;
        if (producer.is_none() || freed_with_[producer] <= sequence.segment_of[v]) continue;
        std::vector<NodeId>& results = own_results_[v];
        if (std::find(results.begin(), results.end(), producer) == results.end())
          results.push_back(producer);
      }
    }
    to_free_.resize(segments_.size());
    gradients_to_free_.resize(segments_.size());
    for (const NodeId v : graph_.nodes().ids()) {
      to_free_[static_cast<size_t>(freed_with_[v])].push_back(v);
      gradients_to_free_[static_cast<size_t>(gradient_freed_with_[v])].push_back(v);
    }
  }

  // Finds the dropped nodes whose results backward needs, directly or to recompute others.
  IdVector<NodeId, bool> FindNeeded() const {
    IdVector<NodeId, bool> is_needed(graph_.nodes().size());
    IdVector<NodeId, bool> is_own_result(graph_.nodes().size());
    for (const std::vector<NodeId>& own : own_results_) {
      for (const NodeId id : own) is_own_result[id] = true;
    }
    const auto need = [&](TensorId tensor) {
      const NodeId producer = graph_.tensor(tensor).producer;
      if (!producer.is_none() && !is_kept_[producer]) is_needed[producer] = true;
    };
    // Visits readers before their producers, since ids are a topological order.
    for (size_t i = graph_.nodes().size(); i-- > 0;) {
      const Node& node = graph_.node(NodeId(i));
      for (const TensorId read : node.backward_reads) need(read);
      if (!is_needed[NodeId(i)] && !is_own_result[NodeId(i)]) continue;
      for (const TensorId input : node.inputs) need(input);
    }
    return is_needed;
  }

  void RunForward(const std::vector<NodeId>& segment) {
    for (const NodeId id : segment) schedule_.steps.push_back(Step::Forward(id));
    for (const NodeId id : segment) {
      if (is_kept_[id]) continue;
      for (const TensorId output : graph_.node(id).outputs) {
        if (!is_dropped_output_[output]) schedule_.steps.push_back(Step::Free(output));
      }
    }
  }

  void RunBackward(size_t i) {
    PollStop();
    const std::vector<NodeId>& segment = segments_[i];
    for (const NodeId id : segment) {
      if (is_needed_[id]) schedule_.steps.push_back(Step::Forward(id));
    }
    for (auto it = segment.rbegin(); it != segment.rend(); ++it) {
      if (own_results_.empty()) {
        schedule_.steps.push_back(Step::Backward(*it));
        continue;
      }
      for (const NodeId id : own_results_[*it]) schedule_.steps.push_back(Step::Forward(id));
      schedule_.steps.push_back(Step::Backward(*it));
      for (const NodeId id : own_results_[*it]) Free(id);
    }
    for (const NodeId id : to_free_.empty() ? segment : to_free_[i]) {
      if (is_kept_[id] || is_needed_[id]) Free(id);
    }
    if (gradients_to_free_.empty()) return;
    for (const NodeId id : gradients_to_free_[i]) {
      for (const TensorId output : graph_.node(id).outputs) {
        if (has_gradient_[output]) schedule_.steps.push_back(Step::FreeGradient(output));
      }
    }
  }

  void Free(NodeId id) {
    for (const TensorId output : graph_.node(id).outputs) {
      schedule_.steps.push_back(Step::Free(output));
    }
  }

  const TensorGraph& graph_;
  const IdVector<NodeId, bool> is_kept_;
  IdVector<NodeId, bool> is_needed_;
  // The graph's outputs that no boundary keeps, which stay only until the loss.
  IdVector<TensorId, bool> is_dropped_output_;
  // By input: the segment after whose backward a node's results and their gradients are released.
  IdVector<NodeId, int32_t> freed_with_;
  IdVector<NodeId, int32_t> gradient_freed_with_;
  std::vector<std::vector<NodeId>> segments_;
  std::vector<std::vector<NodeId>> to_free_;  // By segment. This and the next are empty by node.
  std::vector<std::vector<NodeId>> gradients_to_free_;
  IdVector<NodeId, std::vector<NodeId>> own_results_;  // What a backward step recomputes; or empty.
  const IdVector<TensorId, bool> has_gradient_;
  Schedule schedule_;
};

// Finds when each version of a tensor is produced and last read in a schedule.
class VersionLives {
 public:
  VersionLives(const TensorGraph& graph, const Schedule& schedule)
      : graph_(graph),
        schedule_(schedule),
        made_at_(graph.tensors().size(), kNever),
        last_read_(graph.tensors().size(), kNever),
        backward_at_(graph.nodes().size(), kNever),
        freed_after_(schedule.steps.size()) {}

  // Returns the tensors to release after each step, in ascending order.
  std::vector<std::vector<TensorId>> FindFrees() && {
    size_t loss_at = 0;
    for (size_t k = 0; k < schedule_.steps.size(); ++k) {
      const Step& step = schedule_.steps[k];
      if (step.kind == StepKind::kLoss) loss_at = k;
      if (step.kind == StepKind::kBackward) backward_at_[step.node()] = k;
    }
    for (size_t k = 0; k < schedule_.steps.size(); ++k) Replay(k);
    for (const TensorId id : graph_.tensors().ids()) {
      if (made_at_[id] == kNever) continue;
      const bool is_read_after_loss = last_read_[id] > loss_at;
      const size_t backward = is_read_after_loss ? backward_at_[graph_.tensor(id).producer] : 0;
      FreeAfter(std::max(backward, LastUse(id)), id);
    }
    return std::move(freed_after_);
  }

 private:
  static constexpr size_t kNever = 0;  // The first step reads nothing, so 0 is no last read.

  void Replay(size_t k) {
    PollStop();
    const Step& step = schedule_.steps[k];
    if (step.kind == StepKind::kLoss) {
      for (const TensorId output : graph_.outputs()) last_read_[output] = k;
      return;
    }
    const Node& node = graph_.node(step.node());
    if (step.kind == StepKind::kBackward) {
      for (const TensorId read : node.backward_reads) last_read_[read] = k;
      return;
    }
    for (const TensorId input : node.inputs) last_read_[input] = k;
    for (const TensorId output : node.outputs) {
      if (made_at_[output] != kNever) FreeAfter(LastUse(output), output);
      made_at_[output] = k + 1;
      last_read_[output] = kNever;
    }
  }

  // Returns the last step that reads or produced the current version.
  size_t LastUse(TensorId id) const { return std::max(last_read_[id], made_at_[id] - 1); }
  void FreeAfter(size_t step, TensorId id) { freed_after_[step].push_back(id); }

  const TensorGraph& graph_;
  const Schedule& schedule_;
  IdVector<TensorId, size_t> made_at_;  // The step that produced the current version, plus one.
  IdVector<TensorId, size_t> last_read_;
  IdVector<NodeId, size_t> backward_at_;
  std::vector<std::vector<TensorId>> freed_after_;
};

// A sink of GradientReplay that lists the gradients that a step releases.
struct ReleasedGradients {
  std::vector<TensorId> of;  // By buffer.
  std::vector<TensorId> now;

  void Allocate(int32_t /*buffer*/, TensorId gradient_of) { of.push_back(gradient_of); }
  void Release(int32_t buffer) { now.push_back(of[static_cast<size_t>(buffer)]); }
};

}  // namespace

Schedule HoldUntilBackward(const TensorGraph& graph, const Schedule& schedule) {
  const bool frees_gradients = FreesGradients(graph, FreePolicy::kExplicit);
  ReleasedGradients released;
  GradientReplay<ReleasedGradients> gradients(graph, &released);
  const std::vector<std::vector<TensorId>> freed_after = VersionLives(graph, schedule).FindFrees();
  Schedule held;
  held.frees = FreePolicy::kExplicit;
  for (size_t k = 0; k < schedule.steps.size(); ++k) {
    held.steps.push_back(schedule.steps[k]);
    for (const TensorId id : freed_after[k]) held.steps.push_back(Step::Free(id));
    if (!frees_gradients) continue;
    const Step& step = schedule.steps[k];
    released.now.clear();
    if (step.kind == StepKind::kLoss) gradients.Loss();
    if (step.kind == StepKind::kBackward) gradients.Backward(step.node());
    for (const TensorId id : released.now) held.steps.push_back(Step::FreeGradient(id));
  }
  return held;
}

Schedule LowerWithoutLiveness(const TensorGraph& graph, const Strategy& strategy) {
  if (const auto* sequence = std::get_if<LowerSetSequence>(&strategy)) {
    return SegmentwiseLowering(graph, *sequence).Run();
  }
  Schedule schedule = LowerStrategy(graph, strategy);
  if (schedule.frees == FreePolicy::kExplicit) return schedule;
  return HoldUntilBackward(graph, schedule);
}

}  // namespace ckplan
