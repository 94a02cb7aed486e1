#include "lib/problem/schedule/gradients_in_place.h"

#include <cstddef>
#include <map>
#include <queue>
#include <utility>

#include "lib/base/stop.h"
#include "lib/problem/schedule/gradients.h"

namespace ckplan {
namespace {

constexpr size_t kNever = SIZE_MAX;

class TakeoverFinder {
 public:
  TakeoverFinder(const TensorGraph& graph, const Schedule& schedule, const Timeline& timeline)
      : graph_(graph),
        schedule_(schedule),
        timeline_(timeline),
        taken_over_(timeline.buffers.size(), kOwnMemory),
        last_read_at_(schedule.steps.size()),
        listed_at_(timeline.buffers.size(), kNever),
        released_at_(timeline.buffers.size(), kNever),
        dying_(graph.tensors().size(), {kNever, 0}),
        paired_at_(graph.tensors().size(), kNever),
        replay_(graph, this) {
    for (size_t i = 0; i < timeline.buffers.size(); ++i) {
      if (timeline.buffers[i].kind == BufferKind::kGradient) gradient_buffers_.push_back(i);
    }
    for (size_t v = 0; v < timeline.versions.size(); ++v) {
      last_read_at_[static_cast<size_t>(timeline.versions[v].last_read)].push_back(v);
    }
  }

  std::vector<int32_t> Find() && {
    for (step_ = 0; step_ < schedule_.steps.size(); ++step_) {
      PollStop();
      const Step& step = schedule_.steps[step_];
      if (step.kind == StepKind::kLoss) replay_.Loss();
      if (step.kind == StepKind::kBackward) Backward(step.node());
    }
    return std::move(taken_over_);
  }

  // The sink of GradientReplay.
  void Allocate(int32_t, TensorId) {}
  void Release(int32_t gradient) { released_at_[BufferOf(gradient)] = step_; }
  void Write(size_t input, int32_t gradient) { written_.emplace_back(input, BufferOf(gradient)); }

 private:
  size_t BufferOf(int32_t gradient) const {
    return gradient_buffers_[static_cast<size_t>(gradient)];
  }

  void Backward(NodeId id) {
    const Node& node = graph_.node(id);
    written_.clear();
    std::vector<size_t> output_gradients;
    for (const InPlacePair& pair : node.in_place) {
      const int32_t gradient = replay_.BufferOf(pair.output);
      if (gradient >= 0) output_gradients.push_back(BufferOf(gradient));
    }
    replay_.Backward(id);
    if (node.in_place.empty()) return;
    ListDying(node, output_gradients);
    for (const auto& [input, buffer] : written_) {
      const TensorId tensor = node.inputs[input];
      if (paired_at_[tensor] == step_) TakeOver(buffer);
    }
  }

  // Fills available_ in the order that the header describes.
  void ListDying(const Node& node, const std::vector<size_t>& output_gradients) {
    available_.clear();
    for (const size_t v : last_read_at_[step_]) dying_[timeline_.versions[v].tensor] = {step_, v};
    for (const InPlacePair& pair : node.in_place) ListIfDying(pair.output);
    for (const InPlacePair& pair : node.in_place) {
      ListIfDying(pair.input);
      paired_at_[pair.input] = step_;
    }
    for (const size_t buffer : output_gradients) {
      if (released_at_[buffer] == step_) List(buffer);
    }
  }

  void ListIfDying(TensorId tensor) {
    const auto& [step, version] = dying_[tensor];
    if (step == step_) List(static_cast<size_t>(timeline_.versions[version].buffer));
  }

  void List(size_t buffer) {
    if (listed_at_[buffer] == step_) return;
    listed_at_[buffer] = step_;
    available_[timeline_.buffers[buffer].bytes].push(buffer);
  }

  void TakeOver(size_t gradient) {
    const auto fitting = available_.find(timeline_.buffers[gradient].bytes);
    if (fitting == available_.end() || fitting->second.empty()) return;
    taken_over_[gradient] = static_cast<int32_t>(fitting->second.front());
    fitting->second.pop();
  }

  const TensorGraph& graph_;
  const Schedule& schedule_;
  const Timeline& timeline_;
  std::vector<int32_t> taken_over_;
  std::vector<std::vector<size_t>> last_read_at_;        // Versions, indexed by step.
  std::vector<size_t> gradient_buffers_;                 // Indexed by the replay's buffer numbers.
  std::vector<size_t> listed_at_;                        // Step, indexed by buffer.
  std::vector<size_t> released_at_;                      // Step, indexed by buffer.
  IdVector<TensorId, std::pair<size_t, size_t>> dying_;  // A step, and the version that dies there.
  IdVector<TensorId, size_t> paired_at_;                 // Step.
  std::vector<std::pair<size_t, size_t>> written_;       // Pairs of input and buffer, at this step.
  std::map<Bytes, std::queue<size_t>> available_;        // At this step, by size.
  GradientReplay<TakeoverFinder> replay_;
  size_t step_ = 0;
};

}  // namespace

std::vector<int32_t> GradientsInPlace(const TensorGraph& graph, const Schedule& schedule,
                                      const Timeline& timeline) {
  if (schedule.frees == FreePolicy::kExplicit) {
    return std::vector<int32_t>(timeline.buffers.size(), kOwnMemory);
  }
  return TakeoverFinder(graph, schedule, timeline).Find();
}

}  // namespace ckplan
