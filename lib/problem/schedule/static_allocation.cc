#include "lib/problem/schedule/static_allocation.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "lib/base/stop.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/gradients.h"
#include "lib/problem/schedule/interval_placement.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/timeline.h"

namespace ckplan {

namespace {

// Gradients that overwrite the values from which they are computed (Chen et al. 2016, section 3).
// Fig. 1 of the paper writes a sigmoid in place of the layer below and reuses that memory in the
// sigmoid's backward. The simulator and the executor do not do this: each gradient has its own
// memory.
//
// An operation with an in-place pair (output, input) is elementwise, and so is its backward. So the
// gradient of `input` may reuse the memory of any value of the same size that this backward is the
// last to read: first the outputs of all pairs, then the inputs, then the outputs' gradients, each
// in the order of the pairs. A contribution that is added to a gradient may also be in place; the
// sum has its own memory.

inline constexpr int32_t kNoTakeover = -1;

constexpr size_t kNever = SIZE_MAX;

class TakeoverFinder {
 public:
  TakeoverFinder(const TensorGraph& graph, const Schedule& schedule, const Timeline& timeline)
      : graph_(graph),
        schedule_(schedule),
        timeline_(timeline),
        taken_over_(timeline.buffers.size(), kNoTakeover),
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

  // Fills available_ in the order described above.
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
  IdVector<TensorId, std::pair<size_t, size_t>> dying_;  // A step, and a version that dies at it.
  IdVector<TensorId, size_t> paired_at_;                 // Step.
  std::vector<std::pair<size_t, size_t>> written_;       // Pairs of input and buffer, at this step.
  std::map<Bytes, std::queue<size_t>> available_;        // At this step, by size.
  GradientReplay<TakeoverFinder> replay_;
  size_t step_ = 0;
};

// Returns, for each buffer of the schedule's timeline, the earlier buffer whose memory it reuses,
// or kNoTakeover. Nothing is in place with explicit frees or backward by input. O(b log b) for b
// buffers, reads and pairs of all steps.
std::vector<int32_t> GradientsInPlace(const TensorGraph& graph, const Schedule& schedule,
                                      const Timeline& timeline) {
  if (schedule.frees == FreePolicy::kExplicit || graph.backward() == BackwardForm::kByInput) {
    return std::vector<int32_t>(timeline.buffers.size(), kNoTakeover);
  }
  return TakeoverFinder(graph, schedule, timeline).Find();
}

// Counts each version of a tensor instead of each buffer, since nothing is in place.
Bytes SumVersions(const TensorGraph& graph, const Timeline& timeline) {
  Bytes total;
  for (const Version& version : timeline.versions) total += graph.tensor(version.tensor).bytes;
  for (const Buffer& buffer : timeline.buffers) {
    if (buffer.kind == BufferKind::kGradient) total += buffer.bytes;
  }
  return total;
}

Bytes SumBuffersNotTakenOver(const Timeline& timeline, const std::vector<int32_t>& taken_over) {
  Bytes total;
  for (size_t i = 0; i < timeline.buffers.size(); ++i) {
    const Buffer& buffer = timeline.buffers[i];
    if (buffer.kind == BufferKind::kWorkspace || taken_over[i] != kNoTakeover) continue;
    total += buffer.bytes;
  }
  return total;
}

// A pool of reusable pieces of memory, identified by tags.
class TagPool {
 public:
  size_t Take(Bytes bytes) {
    if (free_.empty()) {
      sizes_.push_back(bytes);
      return sizes_.size() - 1;
    }
    auto chosen = free_.lower_bound({bytes, 0});
    if (chosen == free_.end()) chosen = free_.lower_bound({free_.rbegin()->first, 0});
    const size_t tag = chosen->second;
    free_.erase(chosen);
    sizes_[tag] = std::max(sizes_[tag], bytes);
    return tag;
  }

  void Recycle(size_t tag) { free_.insert({sizes_[tag], tag}); }

  Bytes Total() const {
    Bytes total;
    for (const Bytes size : sizes_) total += size;
    return total;
  }

 private:
  std::vector<Bytes> sizes_;  // By tag.
  std::set<std::pair<Bytes, size_t>> free_;
};

// Returns when each buffer's memory is free for others. Memory that is reused in place stays in use
// until both lives end, since other gradients of the same step may be computed from the old value.
// A buffer precedes those that reuse it.
std::vector<int64_t> EndsInPlace(const Timeline& timeline, const std::vector<int32_t>& taken_over) {
  std::vector<int64_t> end_of(timeline.buffers.size());
  for (size_t i = 0; i < timeline.buffers.size(); ++i) {
    end_of[i] = timeline.buffers[i].end;
    if (taken_over[i] == kNoTakeover) continue;
    end_of[i] = std::max(end_of[i], end_of[static_cast<size_t>(taken_over[i])]);
  }
  return end_of;
}

Bytes ColoredMemory(const Timeline& timeline, const std::vector<int32_t>& taken_over) {
  const std::vector<int64_t> end_of = EndsInPlace(timeline, taken_over);
  std::vector<LiveInterval> intervals;
  std::vector<size_t> interval_of(timeline.buffers.size());
  for (size_t i = 0; i < timeline.buffers.size(); ++i) {
    const Buffer& buffer = timeline.buffers[i];
    if (buffer.kind == BufferKind::kWorkspace || buffer.bytes == Bytes(0)) continue;
    if (taken_over[i] == kNoTakeover) {
      interval_of[i] = intervals.size();
      intervals.push_back({buffer.begin, end_of[i], buffer.bytes.count()});
    } else {
      interval_of[i] = interval_of[static_cast<size_t>(taken_over[i])];
      intervals[interval_of[i]].upper = end_of[i];
    }
  }
  return Bytes(ColoredTotal(intervals));
}

Bytes SharedMemory(const Timeline& timeline, const std::vector<int32_t>& taken_over) {
  struct Change {
    int64_t tick;
    size_t buffer;
    bool is_begin;
  };
  std::vector<bool> is_taken_over(timeline.buffers.size());
  for (const int32_t old : taken_over) {
    if (old != kNoTakeover) is_taken_over[static_cast<size_t>(old)] = true;
  }
  const std::vector<int64_t> end_of = EndsInPlace(timeline, taken_over);
  std::vector<Change> events;
  for (size_t i = 0; i < timeline.buffers.size(); ++i) {
    const Buffer& buffer = timeline.buffers[i];
    if (buffer.kind == BufferKind::kWorkspace || buffer.bytes == Bytes(0)) continue;
    events.push_back({buffer.begin, i, true});
    if (!is_taken_over[i]) events.push_back({end_of[i], i, false});
  }
  std::sort(events.begin(), events.end(),
            [](const Change& a, const Change& b) { return a.tick < b.tick; });  // Ticks are unique.
  TagPool pool;
  std::vector<size_t> tag_of(timeline.buffers.size());
  for (const Change& event : events) {
    PollStop();
    if (!event.is_begin) {
      pool.Recycle(tag_of[event.buffer]);
    } else if (taken_over[event.buffer] != kNoTakeover) {
      tag_of[event.buffer] = tag_of[static_cast<size_t>(taken_over[event.buffer])];
    } else {
      tag_of[event.buffer] = pool.Take(timeline.buffers[event.buffer].bytes);
    }
  }
  return pool.Total();
}

}  // namespace

Bytes StaticAllocation(const TensorGraph& graph, const Schedule& schedule, ArenaStrategy strategy) {
  const Timeline timeline = BuildTimeline(graph, schedule);
  if (strategy == ArenaStrategy::kNone) return SumVersions(graph, timeline);
  const std::vector<int32_t> taken_over = GradientsInPlace(graph, schedule, timeline);
  if (strategy == ArenaStrategy::kInplace) return SumBuffersNotTakenOver(timeline, taken_over);
  return strategy == ArenaStrategy::kColoring ? ColoredMemory(timeline, taken_over)
                                              : SharedMemory(timeline, taken_over);
}

}  // namespace ckplan
