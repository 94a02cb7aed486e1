#include "lib/schedule/timeline.h"

#include <algorithm>
#include <utility>

#include "lib/base/stop.h"
#include "lib/schedule/gradients.h"

namespace ckplan {
namespace {

constexpr int32_t kNoBuffer = -1;
constexpr int64_t kStillLive = -1;

// The versions of all tensors in order of making, each with its last read, and for each step the
// versions that die there, in the order of the timeline's contract.
struct Lifetimes {
  std::vector<Version> versions;
  std::vector<std::vector<int32_t>> dying;  // Per step; indices into `versions`.
};

Lifetimes FindLifetimes(const TensorGraph& graph, const Schedule& schedule) {
  Lifetimes lifetimes;
  IdVector<TensorId, int32_t> current(graph.tensors().size(), kNoBuffer);
  std::vector<int32_t> freed_at;  // Explicit frees; parallel to versions.
  for (size_t k = 0; k < schedule.steps.size(); ++k) {
    const Step& step = schedule.steps[k];
    const auto at = static_cast<int32_t>(k);
    if (step.kind == StepKind::kFree) {
      freed_at[static_cast<size_t>(current[step.tensor()])] = at;
      continue;
    }
    for (const TensorId read : ReadsOf(graph, step)) {
      if (current[read] != kNoBuffer) {
        lifetimes.versions[static_cast<size_t>(current[read])].last_read = at;
      }
    }
    if (step.kind != StepKind::kForward) continue;
    for (const TensorId output : graph.node(step.node()).outputs) {
      current[output] = static_cast<int32_t>(lifetimes.versions.size());
      lifetimes.versions.push_back({output, kNoBuffer, at, at});
      freed_at.push_back(kNoBuffer);
    }
  }
  const bool is_explicit = schedule.frees == FreePolicy::kExplicit;
  lifetimes.dying.resize(schedule.steps.size());
  for (size_t v = 0; v < lifetimes.versions.size(); ++v) {
    const int32_t dies = is_explicit ? freed_at[v] : lifetimes.versions[v].last_read;
    lifetimes.dying[static_cast<size_t>(dies)].push_back(static_cast<int32_t>(v));
  }
  return lifetimes;
}

class TimelineBuilder {
 public:
  TimelineBuilder(const TensorGraph& graph, const Schedule& schedule)
      : graph_(graph),
        schedule_(schedule),
        lifetimes_(FindLifetimes(graph, schedule)),
        dying_of_(graph.tensors().size(), kNoBuffer),
        read_position_(graph.tensors().size(), kNoBuffer),
        replay_(graph, this) {}

  Timeline Build() && {
    for (step_ = 0; step_ < schedule_.steps.size(); ++step_) {
      PollStop();
      const Step& step = schedule_.steps[step_];
      highest_ = live_;
      if (step.kind == StepKind::kForward) Forward(step.node());
      if (step.kind == StepKind::kLoss) {
        timeline_.loss_step = step_;
        replay_.Loss();
      }
      if (step.kind == StepKind::kBackward) Backward(step.node());
      ReleaseDying(step);
      timeline_.step_bytes.push_back(highest_);
      if (highest_ > timeline_.peak) {
        timeline_.peak = highest_;
        timeline_.peak_step = step_;
      }
    }
    EndTheRest();
    timeline_.versions = std::move(lifetimes_.versions);
    return std::move(timeline_);
  }

  // The sink of GradientReplay.
  void Allocate(int32_t gradient, TensorId gradient_of) {
    const int32_t buffer =
        New({BufferKind::kGradient, gradient_of, NodeId(), graph_.tensor(gradient_of).bytes});
    CKPLAN_CHECK(static_cast<size_t>(gradient) == gradient_buffers_.size(),
                 "gradients are numbered in the order of allocation");
    gradient_buffers_.push_back(buffer);
  }
  void Release(int32_t gradient) { End(gradient_buffers_[static_cast<size_t>(gradient)]); }

 private:
  int32_t New(Buffer buffer) {
    buffer.begin = tick_++;
    buffer.end = kStillLive;
    buffer.first_step = static_cast<int32_t>(step_);
    live_ += buffer.bytes;
    highest_ = std::max(highest_, live_);
    timeline_.buffers.push_back(buffer);
    return static_cast<int32_t>(timeline_.buffers.size() - 1);
  }

  void End(int32_t index) {
    Buffer& buffer = timeline_.buffers[static_cast<size_t>(index)];
    buffer.end = tick_++;
    buffer.last_step = static_cast<int32_t>(step_);
    live_ -= buffer.bytes;
  }

  // Gradients of the graph's own inputs are results: they live until the end.
  void EndTheRest() {
    for (size_t i = 0; i < timeline_.buffers.size(); ++i) {
      if (timeline_.buffers[i].end == kStillLive) {
        step_ = schedule_.steps.size() - 1;
        End(static_cast<int32_t>(i));
      }
    }
  }

  int32_t NewWorkspace(NodeId node, Bytes bytes) {
    if (bytes == Bytes(0)) return kNoBuffer;
    return New({BufferKind::kWorkspace, TensorId(), node, bytes});
  }

  Version& VersionAt(int32_t index) { return lifetimes_.versions[static_cast<size_t>(index)]; }

  // Fills dying_of_ for the tensors that are in memory and die at this step.
  void NoteDying() {
    for (const int32_t v : lifetimes_.dying[step_]) {
      if (VersionAt(v).buffer != kNoBuffer) dying_of_[VersionAt(v).tensor] = v;
    }
  }

  // The dying version of `tensor` at this step, if there is one.
  int32_t DyingVersion(TensorId tensor) {
    const int32_t v = dying_of_[tensor];
    return v != kNoBuffer && VersionAt(v).last_read == static_cast<int32_t>(step_) ? v : kNoBuffer;
  }

  // The output that is written in place and the version whose buffer it takes over, if any.
  std::pair<TensorId, int32_t> FindInPlace(const Node& node) {
    if (node.in_place.empty() || schedule_.frees == FreePolicy::kExplicit) {
      return {TensorId(), kNoBuffer};
    }
    NoteDying();
    for (const auto& [output, input] : node.in_place) {
      if (graph_.tensor(input).bytes != graph_.tensor(output).bytes) continue;
      const int32_t version = DyingVersion(input);
      if (version != kNoBuffer) return {output, version};
    }
    return {TensorId(), kNoBuffer};
  }

  void Forward(NodeId id) {
    const Node& node = graph_.node(id);
    const auto [in_place_output, reused] = FindInPlace(node);
    for (const TensorId output : node.outputs) {
      Version& version = lifetimes_.versions[next_version_++];
      if (output == in_place_output) {
        Version& old = lifetimes_.versions[static_cast<size_t>(reused)];
        version.buffer = old.buffer;
        taken_over_ = reused;
      } else {
        version.buffer = New({BufferKind::kTensor, output, NodeId(), graph_.tensor(output).bytes});
      }
    }
    const int32_t workspace = NewWorkspace(id, node.forward_workspace);
    if (workspace != kNoBuffer) End(workspace);
  }

  void Backward(NodeId id) {
    const int32_t workspace = NewWorkspace(id, graph_.node(id).backward_workspace);
    replay_.Backward(id);
    if (workspace != kNoBuffer) End(workspace);
  }

  // Releases in the order of the step's reads, then of its outputs: the position in the reads
  // decides, and versions that nothing reads come last, in order of making.
  void ReleaseDying(const Step& step) {
    std::vector<int32_t>& dying = lifetimes_.dying[step_];
    const std::vector<TensorId>& reads = ReadsOf(graph_, step);
    if (dying.size() > 1) {
      for (size_t i = reads.size(); i-- > 0;) read_position_[reads[i]] = static_cast<int32_t>(i);
      const auto position = [&](int32_t v) {
        const int32_t read = read_position_[VersionAt(v).tensor];
        return read == kNoBuffer ? reads.size() : static_cast<size_t>(read);
      };
      std::stable_sort(dying.begin(), dying.end(),
                       [&](int32_t a, int32_t b) { return position(a) < position(b); });
      for (const TensorId read : reads) read_position_[read] = kNoBuffer;
    }
    for (const int32_t v : dying) {
      if (v != taken_over_) End(lifetimes_.versions[static_cast<size_t>(v)].buffer);
    }
    taken_over_ = kNoBuffer;
  }

  const TensorGraph& graph_;
  const Schedule& schedule_;
  Lifetimes lifetimes_;
  IdVector<TensorId, int32_t> dying_of_;       // See NoteDying; of earlier steps otherwise.
  IdVector<TensorId, int32_t> read_position_;  // In the reads of the step that is ending.
  GradientReplay<TimelineBuilder> replay_;
  std::vector<int32_t> gradient_buffers_;
  Timeline timeline_;
  size_t next_version_ = 0;
  size_t step_ = 0;
  int32_t taken_over_ = kNoBuffer;  // The version whose buffer lives on in an output of this step.
  int64_t tick_ = 0;
  Bytes live_;
  Bytes highest_;
};

}  // namespace

Timeline BuildTimeline(const TensorGraph& graph, const Schedule& schedule) {
  return TimelineBuilder(graph, schedule).Build();
}

}  // namespace ckplan
