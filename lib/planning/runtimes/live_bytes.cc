#include "lib/planning/runtimes/live_bytes.h"

#include <algorithm>

#include "lib/problem/schedule/replay.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {
namespace {

// Adds up what is in memory after a step.
class LiveSink {
 public:
  LiveSink(const StepTable& table, size_t step) : table_(table), wanted_(step) {}
  void Allocate(int32_t /*buffer*/, int32_t value) { live_ += BytesOf(value); }
  void Release(int32_t /*buffer*/, int32_t value) { live_ -= BytesOf(value); }
  void Make(int32_t /*value*/, int32_t /*buffer*/, int32_t /*last_read*/) {}
  void Work(int32_t /*kind*/) {}
  void EndStep(int32_t /*kind*/) {
    if (step_++ == wanted_) found_ = live_;
  }
  Bytes found() const { return found_; }

 private:
  Bytes BytesOf(int32_t value) const { return table_.bytes[static_cast<size_t>(value)]; }

  const StepTable& table_;
  const size_t wanted_;
  size_t step_ = 0;
  Bytes live_;
  Bytes found_;
};

}  // namespace

LiveBytes::LiveBytes(const JointGraph& graph) : graph_(graph), table_(TableOf(graph)) {}

Bytes LiveBytes::BeforeBackward(const std::vector<OpId>& runs) const {
  const auto first = std::find_if(runs.begin(), runs.end(),
                                  [&](OpId id) { return graph_.op(id).phase == Phase::kBackward; });
  if (first == runs.begin() || first == runs.end()) return Bytes(0);
  const Schedule schedule = ScheduleOfRuns(runs);
  const std::vector<int32_t> kinds = KindsOf(graph_, schedule);
  Replay replay(table_);
  replay.Read(kinds, schedule.frees);
  LiveSink sink(table_, static_cast<size_t>(first - runs.begin()) - 1);
  replay.Report(&sink);
  return sink.found();
}

}  // namespace ckplan
