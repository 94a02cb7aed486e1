// The sink of a replay (replay.h) that records the timeline.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/units.h"
#include "lib/problem/schedule/step_table.h"
#include "lib/problem/schedule/timeline.h"

namespace ckplan {

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

}  // namespace ckplan
