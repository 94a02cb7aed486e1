#include "lib/planning/algorithms/rotor/stages.h"

#include <algorithm>
#include <span>

#include "lib/base/stop.h"
#include "lib/problem/graph/vertex_graph.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/timeline.h"

namespace ckplan {
namespace {

class StageFinder {
 public:
  StageFinder(const TensorGraph& graph, const VertexGraph& vertices)
      : graph_(graph), stage_of_(vertices.size()), is_read_backward_(graph.tensors().size()) {
    const Chain blocks = FindChain(graph, vertices);
    const int32_t count = std::min(blocks.block_count, kMaxChainStages);
    chain_.stages.resize(static_cast<size_t>(count));
    chain_.nodes.resize(static_cast<size_t>(count));
    chain_.runs_once = IdVector<NodeId, bool>(vertices.size());
    for (const NodeId id : vertices.ids()) {
      const int64_t block = blocks.block_of[id];
      stage_of_[id] = static_cast<int32_t>(block * count / blocks.block_count);
      chain_.nodes[StageOf(id)].push_back(id);
      for (const TensorId read : graph.node(id).backward_reads) is_read_backward_[read] = true;
    }
  }

  StageChain Run() && {
    for (const NodeId id : graph_.nodes().ids()) CountTensors(id);
    if (!chain_.stages.empty()) chain_.stages.back().gradient = 0;
    Measure();
    return std::move(chain_);
  }

 private:
  size_t StageOf(NodeId id) const { return static_cast<size_t>(stage_of_[id]); }

  bool IsReadLater(TensorId tensor) const {
    const Tensor& read = graph_.tensor(tensor);
    return std::any_of(read.consumers.begin(), read.consumers.end(),
                       [&](NodeId reader) { return StageOf(reader) > StageOf(read.producer); });
  }

  void CountTensors(NodeId id) {
    PollStop();
    const Node& node = graph_.node(id);
    Stage& stage = chain_.stages[StageOf(id)];
    const bool is_read_later = std::any_of(node.outputs.begin(), node.outputs.end(),
                                           [&](TensorId output) { return IsReadLater(output); });
    chain_.runs_once[id] = is_read_later && !NeedsGradient(graph_, id);
    if (chain_.runs_once[id]) return;
    stage.time += node.forward_cost.count();
    for (const TensorId output : node.outputs) {
      const int64_t bytes = graph_.tensor(output).bytes.count();
      if (IsReadLater(output)) {
        stage.output += bytes;
        if (graph_.tensor(output).requires_grad) stage.gradient += bytes;
      }
      if (IsReadLater(output) || is_read_backward_[output]) stage.saved += bytes;
    }
  }

  // Returns the bytes of the stage that a step which saves everything holds until the stage's
  // backward.
  int64_t ReadBackward(size_t stage) const {
    int64_t bytes = 0;
    for (const NodeId id : chain_.nodes[stage]) {
      if (chain_.runs_once[id]) continue;
      for (const TensorId output : graph_.node(id).outputs) {
        if (is_read_backward_[output]) bytes += graph_.tensor(output).bytes.count();
      }
    }
    return bytes;
  }

  Schedule ForwardTwice() const {
    Schedule schedule;
    for (const std::vector<NodeId>& nodes : chain_.nodes) {
      for (const NodeId id : nodes) schedule.steps.push_back(Step::Forward(id));
    }
    for (const std::vector<NodeId>& nodes : chain_.nodes) {
      for (const NodeId id : nodes) {
        if (!chain_.runs_once[id]) schedule.steps.push_back(Step::Forward(id));
      }
    }
    schedule.steps.push_back(Step::Loss());
    for (auto nodes = chain_.nodes.rbegin(); nodes != chain_.nodes.rend(); ++nodes) {
      for (auto id = nodes->rbegin(); id != nodes->rend(); ++id) {
        schedule.steps.push_back(Step::Backward(*id));
      }
    }
    return schedule;
  }

  // Returns the peak of the next `count` steps and advances past them.
  static int64_t TakePeak(std::span<const Bytes>* steps, size_t count) {
    int64_t peak = 0;
    for (const Bytes bytes : steps->first(count)) peak = std::max(peak, bytes.count());
    *steps = steps->subspan(count);
    return peak;
  }

  void Measure() {
    const Timeline timeline = BuildTimeline(graph_, ForwardTwice());
    std::span<const Bytes> steps(timeline.step_bytes);
    const size_t count = chain_.stages.size();
    for (size_t i = 0; i < count; ++i) {
      const int64_t input = i == 0 ? 0 : chain_.stages[i - 1].output;
      chain_.stages[i].forward =
          std::max<int64_t>(0, TakePeak(&steps, chain_.nodes[i].size()) - input);
    }
    // Memory that earlier stages have saved. A stage's input counts whether or not backward reads
    // it.
    std::vector<int64_t> saved_before(count + 1);
    for (size_t i = 0; i < count; ++i) {
      const int64_t own = ReadBackward(i);
      const auto once = std::count_if(chain_.nodes[i].begin(), chain_.nodes[i].end(),
                                      [&](NodeId id) { return chain_.runs_once[id]; });
      const size_t runs = chain_.nodes[i].size() - static_cast<size_t>(once);
      chain_.stages[i].forward_all =
          std::max<int64_t>(0, TakePeak(&steps, runs) - saved_before[i] - UnsavedInput(i));
      saved_before[i + 1] = saved_before[i] + own;
    }
    TakePeak(&steps, 1);  // Skips the loss: the last stage's first backward step needs as much.
    for (size_t i = count; i-- > 0;) {
      chain_.stages[i].backward =
          std::max<int64_t>(0, TakePeak(&steps, chain_.nodes[i].size()) - saved_before[i]);
    }
  }

  // Returns the bytes of the stage's input that no backward reads.
  int64_t UnsavedInput(size_t stage) const {
    if (stage == 0) return 0;
    int64_t bytes = 0;
    for (const NodeId id : chain_.nodes[stage - 1]) {
      if (chain_.runs_once[id]) continue;
      for (const TensorId output : graph_.node(id).outputs) {
        if (IsReadLater(output) && !is_read_backward_[output]) {
          bytes += graph_.tensor(output).bytes.count();
        }
      }
    }
    return bytes;
  }

  const TensorGraph& graph_;
  IdVector<NodeId, int32_t> stage_of_;
  IdVector<TensorId, bool> is_read_backward_;
  StageChain chain_;
};

}  // namespace

StageChain FindStages(const TensorGraph& graph, const VertexGraph& vertices) {
  return StageFinder(graph, vertices).Run();
}

}  // namespace ckplan
