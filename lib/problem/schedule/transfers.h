// The host memory and the time of a schedule with transfers. Its device memory does not depend on
// times; see simulate.h and timeline.h.
//
// Only some values may be moved (MovableValues in step_table.h). For these
//   ["out", v]   begins a copy of the value to the host; until its drop, the value must not be
//                overwritten or recomputed
//   ["drop", v]  waits for that copy, and releases the value's memory on the device
//   ["in", v]    allocates the value on the device, together with its aliases, and begins the copy
//                back
// The copy on the host belongs to the value, not to a version: a recomputation gives the same bits,
// so the copy stays valid and may be loaded several times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/problem/cost/link.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/expand.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/step_table.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// ---- Time ----
//
// Runs follow each other on one compute stream. Copies to the host follow each other on one link,
// and copies back on another link or on the same one (Duplex::kHalf):
//   out   begins when the previous run has ended, the link is free, and a copy back of the value is
//         complete
//   drop  the compute stream waits for the value's copy
//   in    begins when the previous run has ended, the link is free, and the value's copy to the
//   host
//         is complete
// The first run that reads a loaded value or an alias of it waits for the copy back. The makespan
// is the end of the last run; the stall is the time spent waiting.
//

// A copy over the link, from `begin` to `end`.
struct LinkCopy {
  int32_t step = 0;  // The `out` or the `in`.
  CopyWay way = CopyWay::kOut;
  TensorId value;
  Bytes bytes;
  Cost begin;
  Cost end;

  bool operator==(const LinkCopy&) const = default;
};

// The compute stream at a step: it waits until `begin` and works until `end`.
struct StepTime {
  Cost waits;  // The waiting time before `begin`.
  Cost begin;
  Cost end;

  bool operator==(const StepTime&) const = default;
};

// A sink of Replay that measures the time of a schedule with transfers.
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
  Cost free_[2];  // By direction: when the link becomes free.
  std::vector<LinkCopy> copies_;
  std::vector<StepTime> steps_;
  // Indexed by values with their own memory.
  std::vector<int32_t> out_of_;      // The newest copy to the host.
  std::vector<int32_t> arrival_of_;  // The copy back for which no run has waited yet.
};

// ---- Host memory ----
//
// A copy is in host memory from its `out` to the first run that reads the value after its last
// `in`, or to its `drop` if no `in` follows. Each `out` begins another copy.
//

// A copy of a value in host memory, from the first step to the last, inclusive.
struct HostCopy {
  TensorId value;
  Bytes bytes;
  int32_t first_step = 0;
  int32_t last_step = 0;

  bool operator==(const HostCopy&) const = default;
};

// A sink of Replay that measures host memory.
class HostMeter {
 public:
  // Keeps a reference to `table`, which has transfers.
  explicit HostMeter(const StepTable& table);

  void Allocate(int32_t /*buffer*/, int32_t /*value*/) {}
  void Make(int32_t value, int32_t buffer, int32_t last_read);
  void Work(int32_t kind);
  void Release(int32_t /*buffer*/, int32_t /*value*/) {}
  void EndStep(int32_t kind);

  // Valid after the last step. In the order of the `out` steps.
  const std::vector<HostCopy>& copies() const { return copies_; }
  Bytes peak() const;

 private:
  static constexpr int32_t kNone = -1;
  struct HostLoad {
    int32_t copy = 0;  // Index into copies_.
    bool is_read = false;
  };

  const StepTable& table_;
  int32_t step_ = 0;
  std::vector<HostCopy> copies_;
  std::vector<HostLoad> loads_;
  std::vector<int32_t> copy_of_;    // The newest copy of each value, or kNone.
  std::vector<int32_t> load_of_;    // The load that created the value's newest version, or kNone.
  std::vector<int32_t> last_load_;  // The last load of each copy so far, or kNone.
  // The values that the current step has created.
  std::vector<int32_t> made_;
};

// The offsets of the copies in one slab of host memory.
struct HostArena {
  Bytes bytes;
  std::vector<Bytes> offsets;  // Parallel to the copies.
};
HostArena PlaceOnHost(const std::vector<HostCopy>& copies);

// Returns the maximum over all steps of the bytes of the copies in host memory.
Bytes HostPeakOf(const std::vector<HostCopy>& copies);

// Forwards the events of a replay to several sinks.
template <typename... Sink>
class EachSink {
 public:
  explicit EachSink(Sink*... sinks) : sinks_(sinks...) {}

  void Allocate(int32_t buffer, int32_t value) {
    std::apply([&](auto*... sink) { (sink->Allocate(buffer, value), ...); }, sinks_);
  }
  void Make(int32_t value, int32_t buffer, int32_t last_read) {
    std::apply([&](auto*... sink) { (sink->Make(value, buffer, last_read), ...); }, sinks_);
  }
  void Work(int32_t kind) {
    std::apply([&](auto*... sink) { (sink->Work(kind), ...); }, sinks_);
  }
  void Release(int32_t buffer, int32_t value) {
    std::apply([&](auto*... sink) { (sink->Release(buffer, value), ...); }, sinks_);
  }
  void EndStep(int32_t kind) {
    std::apply([&](auto*... sink) { (sink->EndStep(kind), ...); }, sinks_);
  }

 private:
  std::tuple<Sink*...> sinks_;
};

// Returns the values that are copied to the host, ascending and unique.
std::vector<TensorId> MovedValues(const Schedule& schedule);

struct Transfers {
  std::vector<LinkCopy> copies;  // In the order of the steps.
  std::vector<StepTime> steps;   // The times of each step of the schedule.
  std::vector<HostCopy> host;    // In the order of the `out` steps.
  Bytes host_peak;
  Bytes transferred;  // In both directions.
  Cost makespan;
  Cost stall;  // The waiting time within the makespan.
};

// The schedule must have passed Simulator::Run, and the step must be a joint graph, with a link if
// the schedule has transfers. Without transfers, the makespan is the cost of all runs.
Transfers TransfersOf(const TrainingStep& step, const Schedule& schedule);
// Likewise, over another link.
Transfers TransfersOver(const Link& link, const TrainingStep& step, const Schedule& schedule);

// ---- Schedules with transfers in the form of forward graphs ----
//
// Executors run forward steps, the loss and backward steps. Plans with transfers are plans of a
// joint graph. If it was expanded from a forward graph (expand.h), its runs are steps of the
// forward graph, and it moves tensors or gradients of tensors. In this form, the index of a step
// that moves a gradient is the number of tensors plus the index of the gradient's tensor.
inline bool IsGradientTransfer(const TensorGraph& graph, const Step& step) {
  return step.is_transfer() && step.index >= static_cast<int32_t>(graph.tensors().size());
}
inline TensorId TensorOfGradientTransfer(const TensorGraph& graph, const Step& step) {
  return TensorId(step.index - static_cast<int32_t>(graph.tensors().size()));
}

// `schedule` must be a plan of the expansion of `graph`. It needs the same memory in both forms, at
// each step. kUnsupported: it moves a gradient that no later run reads, or a value without bytes
// that only orders runs; a forward graph does not have these in memory.
Result<Schedule> InForwardForm(const TensorGraph& graph, const Expansion& expansion,
                               const Schedule& schedule);

}  // namespace ckplan
