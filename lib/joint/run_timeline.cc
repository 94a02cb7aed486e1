#include "lib/joint/run_timeline.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/joint/run_replay.h"

namespace ckplan {
namespace {

constexpr int32_t kNoBuffer = -1;
constexpr int64_t kStillLive = -1;

class TimelineSink : public RunSink {
 public:
  explicit TimelineSink(const JointGraph& graph)
      : graph_(graph), newest_(graph.values().size(), kNoBuffer) {}

  void Allocate(int32_t /*buffer*/, ValueId first_value) override {
    const Bytes bytes = graph_.value(first_value).bytes;
    index_of_.push_back(New({BufferKind::kTensor, first_value, OpId(), bytes}));
  }
  void Make(ValueId value, int32_t buffer) override {
    if (buffer == kNoBuffer) return;
    const auto step = static_cast<int32_t>(step_);
    newest_[value] = static_cast<int32_t>(timeline_.versions.size());
    timeline_.versions.push_back({value, index_of_[static_cast<size_t>(buffer)], step, step});
  }
  void Workspace(OpId op) override {
    // In this order: what an operation reads is the version from before its run, which Make has
    // replaced only for values that no run of it reads.
    for (const ValueId read : graph_.op(op).reads) {
      if (newest_[read] == kNoBuffer) continue;
      timeline_.versions[static_cast<size_t>(newest_[read])].last_read =
          static_cast<int32_t>(step_);
    }
    const Bytes bytes = graph_.op(op).workspace;
    if (bytes > Bytes(0)) End(New({BufferKind::kWorkspace, ValueId(), op, bytes}));
  }
  void Release(int32_t buffer) override { End(index_of_[static_cast<size_t>(buffer)]); }
  void EndStep(OpId /*op*/) override {
    timeline_.step_bytes.push_back(highest_);
    if (highest_ > timeline_.peak) {
      timeline_.peak = highest_;
      timeline_.peak_step = step_;
    }
    highest_ = live_;
    ++step_;
  }

  Timeline Finish() && {
    --step_;
    for (size_t i = 0; i < timeline_.buffers.size(); ++i) {
      if (timeline_.buffers[i].end == kStillLive) End(static_cast<int32_t>(i));
    }
    return std::move(timeline_);
  }

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

  const JointGraph& graph_;
  IdVector<ValueId, int32_t> newest_;  // Version of each value.
  std::vector<int32_t> index_of_;      // Of the replay's buffers in the timeline.
  Timeline timeline_;
  int64_t tick_ = 0;
  size_t step_ = 0;
  Bytes live_;
  Bytes highest_;
};

}  // namespace

Timeline BuildRunTimeline(const JointGraph& graph, std::span<const OpId> runs) {
  TimelineSink sink(graph);
  const Result<Done> replayed = RunReplay(graph).Run(runs, &sink);
  CKPLAN_CHECK(replayed.ok(), "the runs have been simulated before");
  return std::move(sink).Finish();
}

}  // namespace ckplan
