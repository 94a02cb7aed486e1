#include "lib/problem/schedule/timeline.h"

#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/problem/schedule/gradients.h"
#include "lib/problem/schedule/replay.h"
#include "lib/problem/schedule/timeline_sink.h"

namespace ckplan {
namespace {

// Adds the gradients, which the replay does not track.
class GradientTimelineSink : public TimelineSink {
 public:
  GradientTimelineSink(const TensorGraph& graph, const StepTable& table)
      : TimelineSink(table),
        graph_(graph),
        loss_(KindOf(graph, Step::Loss())),
        first_transfer_(table.first_transfer),
        gradients_{this, {}},
        replay_(graph, &gradients_) {}

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
  GradientTimelineSink sink(step.forward(), table);
  replay.Report(&sink);
  return std::move(sink).Finish();
}

Timeline BuildTimeline(const TrainingStep& step, std::span<const NodeId> runs) {
  return BuildTimeline(step, ScheduleOfRuns(runs));
}

}  // namespace ckplan
