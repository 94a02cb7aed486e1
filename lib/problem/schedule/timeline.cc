#include "lib/problem/schedule/timeline.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/units.h"
#include "lib/problem/schedule/gradients.h"
#include "lib/problem/schedule/replay.h"
#include "lib/problem/schedule/step_table.h"

namespace ckplan {

namespace {

// The sink of a replay (replay.h) that records the timeline.
class TimelineSink {
 public:
  explicit TimelineSink(const StepTable& table) : table_(table) {}  // Keeps a reference to `table`.

  void Allocate(int32_t buffer, int32_t value);
  void Make(int32_t value, int32_t buffer, int32_t last_read);
  void Work(int32_t kind);
  void Release(int32_t buffer, int32_t value);
  void EndStep(int32_t kind);

  // Called after the last step: whatever still lives does so to the end.
  Timeline Finish() &&;

 protected:
  static constexpr int32_t kNoBuffer = -1;

  int32_t New(Buffer buffer);
  void End(int32_t index);
  // The workspace of a step of this kind, made by `node`; kNoBuffer if it needs none.
  int32_t NewWorkspace(int32_t kind, NodeId node);

  Timeline timeline_;

 private:
  const StepTable& table_;
  std::vector<int32_t> index_of_;  // Index in the timeline of each of the replay's buffers.
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
  const int32_t workspace = NewWorkspace(kind, NodeId(kind));
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

int32_t TimelineSink::NewWorkspace(int32_t kind, NodeId node) {
  const Bytes bytes = table_.workspace[static_cast<size_t>(kind)];
  if (bytes == Bytes(0)) return kNoBuffer;
  return New({BufferKind::kWorkspace, TensorId(), node, bytes});
}

// Adds the gradients, which the replay does not track.
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
    const int32_t workspace = NewWorkspace(kind, node);
    replay_.Backward(node);
    if (workspace != kNoBuffer) End(workspace);
  }

  void EndStep(int32_t kind) {
    const auto tensors = static_cast<int32_t>(graph_.tensors().size());
    if (kind < 0 && FreeOf(kind) >= tensors) replay_.Free(TensorId(FreeOf(kind) - tensors));
    TimelineSink::EndStep(kind);
  }

 private:
  // The numbers of transfers of gradients are those of KindsOf, from 0.
  void MoveGradient(int32_t transfer) {
    const TensorId tensor(transfer / StepTable::kTransferKinds);
    const auto way = static_cast<int32_t>(StepKind::kOut) + transfer % StepTable::kTransferKinds;
    if (static_cast<StepKind>(way) == StepKind::kDrop) replay_.TakeAway(tensor);
    if (static_cast<StepKind>(way) == StepKind::kIn) replay_.BringBack(tensor);
  }

  // The sink of GradientReplay.
  struct Gradients {
    GradientTimelineSink* timeline;
    std::vector<int32_t> buffers;  // Index of each gradient's buffer in the timeline.

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
  const StepTable table = TableFor(step, schedule);
  const std::vector<int32_t> kinds = KindsOf(step, schedule);
  Replay replay(table);
  const auto fault = replay.Read(kinds, schedule.frees);
  CKPLAN_CHECK(!fault, "the schedule has been simulated before");
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

}  // namespace ckplan
