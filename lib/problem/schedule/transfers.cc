#include "lib/problem/schedule/transfers.h"

#include <algorithm>

#include "lib/base/check.h"
#include "lib/problem/schedule/replay.h"

namespace ckplan {

std::vector<TensorId> MovedValues(const Schedule& schedule) {
  std::vector<TensorId> moved;
  for (const Step& step : schedule.steps) {
    if (step.kind == StepKind::kOut) moved.push_back(step.tensor());
  }
  std::sort(moved.begin(), moved.end());
  moved.erase(std::unique(moved.begin(), moved.end()), moved.end());
  return moved;
}

Transfers TransfersOf(const TrainingStep& step, const Schedule& schedule) {
  return TransfersOver(step.link() == nullptr ? Link() : *step.link(), step, schedule);
}

Transfers TransfersOver(const Link& link, const TrainingStep& step, const Schedule& schedule) {
  StepTable table = TableOf(step);
  AddTransfers(step.joint(), &table);
  Replay replay(table);
  const std::vector<int32_t> kinds = KindsOf(step, schedule);
  const auto fault = replay.Read(kinds, schedule.frees);
  CKPLAN_CHECK(!fault, "the schedule has been simulated before");
  HostMeter host(table);
  TransferClock clock(table, link);
  EachSink<HostMeter, TransferClock> sinks(&host, &clock);
  replay.Report(&sinks);
  return {clock.copies(),      clock.steps(),    host.copies(), host.peak(),
          clock.transferred(), clock.makespan(), clock.stall()};
}

}  // namespace ckplan
