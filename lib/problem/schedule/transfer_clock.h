// The sink of a replay (replay.h) that measures the time of a schedule with transfers.
//
// Runs follow each other on one compute stream. Copies to the host follow each other on a link, and
// copies back on another one, or all of them on the same one (Duplex::kHalf):
//   out   begins when the run before it has ended, the link is free and, if the value is on its way
//         back, that copy is complete
//   drop  the compute stream waits until the value's copy is complete
//   in    begins when the run before it has ended, the link is free and the value's copy to the
//         host is complete
// The first run that reads a loaded value, or an alias of it, waits until the copy back is
// complete. The makespan is the time at which the last run ends, and the stall is the part that is
// waiting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/base/units.h"
#include "lib/problem/cost/link.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/step_table.h"

namespace ckplan {

// A copy over the link, which takes from `begin` to `end`.
struct LinkCopy {
  int32_t step = 0;  // The `out` or the `in`.
  CopyWay way = CopyWay::kOut;
  TensorId value;
  Bytes bytes;
  Cost begin;
  Cost end;

  bool operator==(const LinkCopy&) const = default;
};

// What the compute stream does at a step: it waits until `begin`, and works until `end`.
struct StepTime {
  Cost waits;  // The part before `begin` that is waiting.
  Cost begin;
  Cost end;

  bool operator==(const StepTime&) const = default;
};

class TransferClock {
 public:
  // Keeps references to its arguments. The table must have transfers.
  TransferClock(const StepTable& table, const Link& link);

  void Allocate(int32_t /*buffer*/, int32_t /*value*/) {}
  void Make(int32_t /*value*/, int32_t /*buffer*/, int32_t /*last_read*/) {}
  void Work(int32_t kind);
  void Release(int32_t /*buffer*/, int32_t /*value*/) {}
  void EndStep(int32_t /*kind*/) {}

  Cost makespan() const { return now_; }
  Cost stall() const { return stall_; }
  Bytes transferred() const { return transferred_; }
  const std::vector<LinkCopy>& copies() const { return copies_; }  // In the order of the steps.
  const std::vector<StepTime>& steps() const { return steps_; }

 private:
  static constexpr int32_t kNone = -1;

  void Run(int32_t kind);
  void WaitUntil(Cost time);
  void Copy(CopyWay way, int32_t value, Cost earliest);
  LinkCopy* CopyAt(int32_t index) {
    return index == kNone ? nullptr : &copies_[static_cast<size_t>(index)];
  }

  const StepTable& table_;
  const Link& link_;
  Cost now_;
  Cost stall_;
  Bytes transferred_;
  Cost free_[2];  // When the link is free, for each way.
  std::vector<LinkCopy> copies_;
  std::vector<StepTime> steps_;
  // Indexed by value that has memory of its own.
  std::vector<int32_t> out_of_;      // The newest copy to the host.
  std::vector<int32_t> arrival_of_;  // The copy back that no run has waited for yet.
};

}  // namespace ckplan
