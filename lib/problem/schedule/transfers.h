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
// device does not depend on times: replay.h has its rules, host_meter.h those of the host and
// transfer_clock.h those of time.
#pragma once

#include <tuple>
#include <vector>

#include "lib/base/units.h"
#include "lib/problem/cost/link.h"
#include "lib/problem/schedule/host_meter.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/training_step.h"
#include "lib/problem/schedule/transfer_clock.h"

namespace ckplan {

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

}  // namespace ckplan
