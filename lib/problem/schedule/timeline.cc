#include "lib/problem/schedule/timeline.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/units.h"
#include "lib/problem/schedule/gradients.h"
#include "lib/problem/schedule/replay.h"
#include "lib/problem/schedule/step_table.h"

namespace ckplan {
namespace {

// A sink of Replay that records the timeline.
class TimelineSink {
 public:
  explicit TimelineSink(const StepTable& table) : table_(table) {}  // Keeps a reference to `table`.

  void Allocate(int32_t buffer, int32_t value);
  void Make(int32_t value, int32_t buffer, int32_t last_read);
  void Work(int32_t kind);
  void Release(int32_t buffer, int32_t value);
  void EndStep(int32_t kind);

  // Ends all live buffers after the last step.
  Timeline Finish() &&;

 protected:
  static constexpr int32_t kNoBuffer = -1;

  int32_t New(Buffer buffer);
  void End(int32_t index);
  // Allocates the workspace of a step of this kind for `node`; returns kNoBuffer if it needs none.
  int32_t AllocateWorkspace(int32_t kind, NodeId node);

  Timeline timeline_;

 private:
  const StepTable& table_;
  std::vector<int32_t> index_of_;  // Maps the replay's buffers to the timeline's.
  int64_t tick_ = 0;
  int32_t step_ = 0;
  Bytes live_;
  Bytes highest_;  // In this step.
};

constexpr int64_t kStillLive = -1;

void TimelineSink::Allocate(int32_t /*buffer*/, int32_t value) {
  const Bytes bytes = table_.bytes[static_cast<size_t>(value)];
  index_of_.push_back(New({BufferKind::kTensor, TensorId(value), NodeId(), bytes}));
}

void TimelineSink::Make(int32_t value, int32_t buffer, int32_t last_read) {
  if (buffer == kNoBuffer) return;
  const int32_t index = index_of_[static_cast<size_t>(buffer)];
  timeline_.versions.push_back({TensorId(value), index, step_, last_read});
}

void TimelineSink::Work(int32_t kind) {
  const int32_t workspace = AllocateWorkspace(kind, NodeId(kind));
  if (workspace != kNoBuffer) End(workspace);
}

void TimelineSink::Release(int32_t buffer, int32_t /*value*/) {
  End(index_of_[static_cast<size_t>(buffer)]);
}

void TimelineSink::EndStep(int32_t /*kind*/) {
  timeline_.step_bytes.push_back(highest_);
  if (highest_ > timeline_.peak) {
    timeline_.peak = highest_;
    timeline_.peak_step = static_cast<size_t>(step_);
  }
  highest_ = live_;
  ++step_;
}

Timeline TimelineSink::Finish() && {
  --step_;
  for (size_t i = 0; i < timeline_.buffers.size(); ++i) {
    if (timeline_.buffers[i].end == kStillLive) End(static_cast<int32_t>(i));
  }
  return std::move(timeline_);
}

int32_t TimelineSink::New(Buffer buffer) {
  buffer.begin = tick_++;
  buffer.end = kStillLive;
  buffer.first_step = step_;
  live_ += buffer.bytes;
  highest_ = std::max(highest_, live_);
  timeline_.buffers.push_back(buffer);
  return static_cast<int32_t>(timeline_.buffers.size() - 1);
}

void TimelineSink::End(int32_t index) {
  Buffer& buffer = timeline_.buffers[static_cast<size_t>(index)];
  buffer.end = tick_++;
  buffer.last_step = step_;
  live_ -= buffer.bytes;
}

int32_t TimelineSink::AllocateWorkspace(int32_t kind, NodeId node) {
  const Bytes bytes = table_.workspace[static_cast<size_t>(kind)];
  if (bytes == Bytes(0)) return kNoBuffer;
  return New({BufferKind::kWorkspace, TensorId(), node, bytes});
}

// Also records gradients, which the replay does not track.
class GradientTimelineSink : public TimelineSink {
 public:
  GradientTimelineSink(const TensorGraph& graph, const StepTable& table, FreePolicy frees)
      : TimelineSink(table),
        graph_(graph),
        loss_(KindOf(graph, Step::Loss())),
        first_transfer_(table.first_transfer),
        gradients_{this, {}},
        replay_(graph, &gradients_, frees) {}

  void Work(int32_t kind) {
    if (kind < loss_ || kind >= first_transfer_) return TimelineSink::Work(kind);
    if (kind == loss_) {
      timeline_.loss_step = timeline_.step_bytes.size();
      return replay_.Loss();
    }
    const int32_t moves = kind - 2 * loss_ - 1;
    if (moves >= 0) return MoveGradient(moves);
    const NodeId node(kind - loss_ - 1);
    const int32_t workspace = AllocateWorkspace(kind, node);
    replay_.Backward(node);
    if (workspace != kNoBuffer) End(workspace);
  }

  void EndStep(int32_t kind) {
    const auto tensors = static_cast<int32_t>(graph_.tensors().size());
    if (kind < 0 && FreeOf(kind) >= tensors) replay_.Free(TensorId(FreeOf(kind) - tensors));
    TimelineSink::EndStep(kind);
  }

 private:
  // `transfer` numbers the transfers of gradients from 0, in the order of KindsOf.
  void MoveGradient(int32_t transfer) {
    const TensorId tensor(transfer / StepTable::kTransferKinds);
    const auto way = static_cast<int32_t>(StepKind::kOut) + transfer % StepTable::kTransferKinds;
    if (static_cast<StepKind>(way) == StepKind::kDrop) replay_.TakeAway(tensor);
    if (static_cast<StepKind>(way) == StepKind::kIn) replay_.BringBack(tensor);
  }

  // The sink of GradientReplay.
  struct Gradients {
    GradientTimelineSink* timeline;
    std::vector<int32_t> buffers;  // Maps gradient buffers to the timeline's.

    void Allocate(int32_t gradient, TensorId gradient_of) {
      CKPLAN_CHECK(static_cast<size_t>(gradient) == buffers.size(),
                   "gradients are numbered in the order of allocation");
      const Bytes bytes = timeline->graph_.tensor(gradient_of).bytes;
      buffers.push_back(timeline->New({BufferKind::kGradient, gradient_of, NodeId(), bytes}));
    }
    void Release(int32_t gradient) { timeline->End(buffers[static_cast<size_t>(gradient)]); }
  };

  const TensorGraph& graph_;
  const int32_t loss_;
  const int32_t first_transfer_;
  Gradients gradients_;
  GradientReplay<Gradients> replay_;
};

}  // namespace

Timeline BuildTimeline(const TrainingStep& step, const Schedule& schedule) {
  const StepTable table = MakeStepTable(step, schedule);
  const std::vector<int32_t> kinds = KindsOf(step, schedule);
  Replay replay(table);
  const auto fault = replay.Read(kinds, schedule.frees);
  CKPLAN_CHECK(!fault, "the schedule passed Simulator::Run");
  if (step.is_joint()) {
    TimelineSink sink(table);
    replay.Report(&sink);
    return std::move(sink).Finish();
  }
  GradientTimelineSink sink(step.forward(), table, schedule.frees);
  replay.Report(&sink);
  return std::move(sink).Finish();
}

Timeline BuildTimeline(const TrainingStep& step, std::span<const NodeId> runs) {
  return BuildTimeline(step, ScheduleOfRuns(runs));
}

namespace {

// Returns the tick of the peak step at which memory use is highest.
int64_t PeakTick(const Timeline& timeline) {
  const auto step = static_cast<int32_t>(timeline.peak_step);
  std::vector<std::pair<int64_t, int64_t>> changes;  // Tick, bytes.
  for (const Buffer& buffer : timeline.buffers) {
    if (buffer.first_step > step || buffer.last_step < step) continue;
    changes.emplace_back(buffer.begin, buffer.bytes.count());
    changes.emplace_back(buffer.end, -buffer.bytes.count());
  }
  std::sort(changes.begin(), changes.end());
  int64_t live = 0;
  for (size_t i = 0; i < changes.size(); ++i) {
    live += changes[i].second;
    const bool is_last_of_tick = i + 1 == changes.size() || changes[i + 1].first > changes[i].first;
    if (is_last_of_tick && live == timeline.peak.count()) return changes[i].first;
  }
  return changes.empty() ? 0 : changes.front().first;
}

// Returns the last version in each buffer at the peak step.
std::vector<int32_t> VersionsAtPeak(const Timeline& timeline) {
  std::vector<int32_t> versions(timeline.buffers.size(), -1);
  for (size_t v = 0; v < timeline.versions.size(); ++v) {
    const Version& version = timeline.versions[v];
    if (version.made_at > static_cast<int32_t>(timeline.peak_step)) break;
    versions[static_cast<size_t>(version.buffer)] = static_cast<int32_t>(v);
  }
  return versions;
}

}  // namespace

std::vector<PeakBuffer> FindPeakBuffers(const Timeline& timeline) {
  const std::vector<int32_t> versions = VersionsAtPeak(timeline);
  const int64_t tick = PeakTick(timeline);
  std::vector<PeakBuffer> live;
  for (size_t i = 0; i < timeline.buffers.size(); ++i) {
    const Buffer& buffer = timeline.buffers[i];
    if (buffer.bytes == Bytes(0) || buffer.begin > tick || tick >= buffer.end) continue;
    live.push_back({static_cast<int32_t>(i), versions[i]});
  }
  return live;
}

namespace {

MemoryKind KindOf(const Buffer& buffer) {
  return buffer.kind == BufferKind::kGradient ? MemoryKind::kGradients : MemoryKind::kWorkspace;
}

// The allocation or release at each tick.
struct Event {
  size_t buffer = 0;
  bool is_release = false;
};

std::vector<Event> EventsOf(const Timeline& timeline) {
  std::vector<Event> events(2 * timeline.buffers.size());
  for (size_t i = 0; i < timeline.buffers.size(); ++i) {
    events[static_cast<size_t>(timeline.buffers[i].begin)] = {i, false};
    events[static_cast<size_t>(timeline.buffers[i].end)] = {i, true};
  }
  return events;
}

class MemoryTrace {
 public:
  MemoryTrace(const Timeline& timeline, std::span<const MemoryKind> kinds)
      : timeline_(timeline),
        kinds_(kinds),
        events_(EventsOf(timeline)),
        kind_of_(timeline.buffers.size()) {
    for (size_t i = 0; i < kind_of_.size(); ++i) kind_of_[i] = KindOf(timeline.buffers[i]);
  }

  std::vector<StepMemory> Run() && {
    std::vector<StepMemory> steps;
    steps.reserve(timeline_.step_bytes.size());
    for (size_t step = 0; step < timeline_.step_bytes.size(); ++step) {
      HoldVersions(static_cast<int32_t>(step));
      StepMemory memory{live_, {}};
      for (; next_event_ < events_.size() && StepOf(events_[next_event_]) == step; ++next_event_) {
        Apply(events_[next_event_]);
        if (live_bytes_ > memory.total()) memory.by_kind = live_;
      }
      memory.after = live_bytes_;
      steps.push_back(memory);
    }
    return steps;
  }

 private:
  size_t StepOf(const Event& event) const {
    const Buffer& buffer = timeline_.buffers[event.buffer];
    return static_cast<size_t>(event.is_release ? buffer.last_step : buffer.first_step);
  }

  Bytes& LiveOf(size_t buffer) { return live_[static_cast<size_t>(kind_of_[buffer])]; }

  // Updates the kinds of the buffers whose contents this step replaces or creates.
  void HoldVersions(int32_t step) {
    for (; next_version_ < timeline_.versions.size() &&
           timeline_.versions[next_version_].made_at == step;
         ++next_version_) {
      const Version& version = timeline_.versions[next_version_];
      const auto b = static_cast<size_t>(version.buffer);
      const Buffer& buffer = timeline_.buffers[b];
      const bool is_in_use = buffer.first_step < step;
      if (is_in_use) LiveOf(b) -= buffer.bytes;
      kind_of_[b] = kinds_[next_version_];
      if (is_in_use) LiveOf(b) += buffer.bytes;
    }
  }

  void Apply(const Event& event) {
    const Bytes bytes = timeline_.buffers[event.buffer].bytes;
    if (event.is_release) {
      LiveOf(event.buffer) -= bytes;
      live_bytes_ -= bytes;
    } else {
      LiveOf(event.buffer) += bytes;
      live_bytes_ += bytes;
    }
  }

  const Timeline& timeline_;
  const std::span<const MemoryKind> kinds_;  // The kind of each version.
  std::vector<Event> events_;
  std::vector<MemoryKind> kind_of_;  // The current kind of each buffer.
  std::array<Bytes, kMemoryKinds> live_;
  Bytes live_bytes_;
  size_t next_event_ = 0;
  size_t next_version_ = 0;
};

}  // namespace

std::string_view NameOf(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kKept:
      return "kept";
    case MemoryKind::kPassing:
      return "passing";
    case MemoryKind::kRecomputed:
      return "recomputed";
    case MemoryKind::kGradients:
      return "gradients";
    case MemoryKind::kWorkspace:
      return "workspace";
    case MemoryKind::kLoaded:
      return "loaded";
  }
  CKPLAN_CHECK(false, "every kind has a name");
}

MemoryKind KindOf(const Timeline& timeline, const Version& version) {
  const auto loss = static_cast<int32_t>(timeline.loss_step);
  if (version.made_at > loss) return MemoryKind::kRecomputed;
  return version.last_read > loss ? MemoryKind::kKept : MemoryKind::kPassing;
}

namespace {

// Returns the first step of a joint graph's backward pass, which replaces the loss.
int32_t FirstBackward(const TrainingStep& of, const Schedule& schedule) {
  const auto first = std::find_if(schedule.steps.begin(), schedule.steps.end(),
                                  [&](const Step& step) { return of.IsBackward(step); });
  return static_cast<int32_t>(first - schedule.steps.begin());
}

// Returns the kind of a version from the first run of a joint graph's operation. It is kept if any
// step from the first backward step on reads it, even a rerun of a forward operation.
MemoryKind KindOfFirst(const TrainingStep& of, const Schedule& schedule, const Version& version,
                       int32_t first_backward) {
  if (of.IsBackward(schedule.steps[static_cast<size_t>(version.made_at)])) {
    return MemoryKind::kGradients;
  }
  return version.last_read >= first_backward ? MemoryKind::kKept : MemoryKind::kPassing;
}

}  // namespace

std::vector<MemoryKind> MemoryKindsOf(const TrainingStep& of, const Schedule& schedule,
                                      const Timeline& timeline) {
  std::vector<MemoryKind> kinds;
  kinds.reserve(timeline.versions.size());
  if (!of.is_joint()) {
    for (const Version& version : timeline.versions) kinds.push_back(KindOf(timeline, version));
    return kinds;
  }
  IdVector<NodeId, bool> has_run(of.node_count());
  std::vector<bool> is_first;  // By step: its operation runs for the first time.
  for (const Step& step : schedule.steps) {
    is_first.push_back(!step.is_transfer() && !has_run[step.node()]);
    if (!step.is_transfer()) has_run[step.node()] = true;
  }
  const bool has_backward = of.HasBackward();
  const int32_t first_backward = FirstBackward(of, schedule);
  for (const Version& version : timeline.versions) {
    if (schedule.steps[static_cast<size_t>(version.made_at)].is_transfer()) {
      kinds.push_back(MemoryKind::kLoaded);
    } else if (!is_first[static_cast<size_t>(version.made_at)]) {
      kinds.push_back(MemoryKind::kRecomputed);
    } else {
      kinds.push_back(has_backward ? KindOfFirst(of, schedule, version, first_backward)
                                   : MemoryKind::kKept);
    }
  }
  return kinds;
}

size_t ShownKinds(const Schedule& schedule) {
  return HasTransfers(schedule) ? kMemoryKinds : static_cast<size_t>(MemoryKind::kLoaded);
}

Bytes StepMemory::total() const { return std::accumulate(by_kind.begin(), by_kind.end(), Bytes()); }

std::vector<StepMemory> TraceMemory(const Timeline& timeline) {
  std::vector<MemoryKind> kinds;
  kinds.reserve(timeline.versions.size());
  for (const Version& version : timeline.versions) kinds.push_back(KindOf(timeline, version));
  return TraceMemory(timeline, kinds);
}

std::vector<StepMemory> TraceMemory(const Timeline& timeline, std::span<const MemoryKind> kinds) {
  return MemoryTrace(timeline, kinds).Run();
}

}  // namespace ckplan
