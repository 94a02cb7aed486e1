// What a schedule with transfers does to the host and to time, in addition to the memory of the
// device (simulate.h, timeline.h).
//
// Only some values may be moved (MovableValues in step_table.h). For these
//   ["out", v]   begins a copy of the value to the host; until its drop, the value can be neither
//                overwritten nor made again
//   ["drop", v]  waits until that copy is complete, and releases the value's memory on the device
//   ["in", v]    allocates the value on the device again, together with its aliases, and begins the
//                copy back
// The copy on the host belongs to the value and not to a version: another run makes the same bits,
// so the copy stays good and may be loaded several times. What memory a schedule needs on the
// device does not depend on times: replay.h has its rules, transfers.h those of the host and
// transfers.h those of time.
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

// The sink of a replay (replay.h) that measures the memory of the host: the copies of values that
// are there. A copy is in host memory from its `out` to the first run that reads what the value's
// last `in` loads, or to its `drop` if nothing loads it. Each `out` begins another copy.

// A copy of a value in host memory, from the first step to the last, both inclusive.
struct HostCopy {
  TensorId value;
  Bytes bytes;
  int32_t first_step = 0;
  int32_t last_step = 0;

  bool operator==(const HostCopy&) const = default;
};

class HostMeter {
 public:
  // Keeps a reference to `table`, which has transfers.
  explicit HostMeter(const StepTable& table);

  void Allocate(int32_t /*buffer*/, int32_t /*value*/) {}
  void Make(int32_t value, int32_t buffer, int32_t last_read);
  void Work(int32_t kind);
  void Release(int32_t /*buffer*/, int32_t /*value*/) {}
  void EndStep(int32_t kind);

  // For after the last step, in the order of the `out` steps.
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
  std::vector<int32_t> load_of_;    // The load that made the value's newest version, or kNone.
  std::vector<int32_t> last_load_;  // The last load of each copy so far, or kNone.
  // Values that the step has made so far.
  std::vector<int32_t> made_;
};

// Offsets of the copies in one slab of host memory, and its size.
struct HostArena {
  Bytes bytes;
  std::vector<Bytes> offsets;  // Parallel to the copies.
};
HostArena PlaceOnHost(const std::vector<HostCopy>& copies);

// Returns the largest sum of the bytes of copies that are there at one step.
Bytes HostPeakOf(const std::vector<HostCopy>& copies);

// Reports the events of a replay to several sinks, one after the other.
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

// Returns the values that are copied to the host, each once, ascending.
std::vector<TensorId> MovedValues(const Schedule& schedule);

struct Transfers {
  std::vector<LinkCopy> copies;  // In the order of the steps.
  std::vector<StepTime> steps;   // When each step of the schedule begins and ends.
  std::vector<HostCopy> host;    // In the order of the `out` steps.
  Bytes host_peak;
  Bytes transferred;  // Out and in together.
  Cost makespan;
  Cost stall;  // The part of the makespan that is waiting.
};

// The schedule must have passed Simulator::Run, and the step must be a joint graph. Without
// transfers the makespan is the cost of all runs. With transfers the step must have a link.
Transfers TransfersOf(const TrainingStep& step, const Schedule& schedule);
// Follows the schedule over another link.
Transfers TransfersOver(const Link& link, const TrainingStep& step, const Schedule& schedule);

// Schedules with transfers (transfers.h) in the form of forward graphs: forward steps, the loss and
// backward steps. Executors run steps in this form.
//
// Plans with transfers are plans of a joint graph. If that is the expansion of a forward graph
// (expand.h), its runs are steps of the forward graph, and what it moves is a tensor or the
// gradient of one. In a step of this form that moves a gradient, the index is the number of tensors
// plus that of the tensor whose gradient it is.
inline bool IsGradientTransfer(const TensorGraph& graph, const Step& step) {
  return step.is_transfer() && step.index >= static_cast<int32_t>(graph.tensors().size());
}
inline TensorId TensorOfGradientTransfer(const TensorGraph& graph, const Step& step) {
  return TensorId(step.index - static_cast<int32_t>(graph.tensors().size()));
}

// `schedule` must be a plan of the expansion of `graph`. Its memory is the same in both forms, at
// every step. kUnsupported: it moves a gradient that no run reads any more, or a value without
// bytes that only orders runs; steps of a forward graph do not have these in memory.
Result<Schedule> InForwardForm(const TensorGraph& graph, const Expansion& expansion,
                               const Schedule& schedule);

}  // namespace ckplan
