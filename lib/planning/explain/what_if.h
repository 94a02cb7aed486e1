// The memory and time of a plan if one of its decisions were different. Each change makes a whole
// schedule, which the simulator measures, so the figures are exact. They are those of this plan
// changed in one place, not of the best plan with that decision.
//
// All changes require plans that free by liveness. With transfers, all but the last may break a
// rule of lib/problem/schedule/transfers.h, so that they cannot be measured.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/planning/explain/traced_plan.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// Releases the memory of the version after `step`, where it must be in memory. Later readers get it
// from another run of its producer. Whatever that run reads that is no longer in memory runs again
// as well, just before it. Returns nothing if that would run an operation twice that the graph or a
// constraint forbids; the constraints do not apply to the producer itself.
std::optional<Schedule> FreedAfter(const TracedPlan& traced, int32_t version, int32_t step);

// Leaves out the run that makes the version, which is a run beyond the first, and the runs that
// only it needed. The version before stays in memory instead.
Schedule KeptInstead(const TracedPlan& traced, int32_t version);

// Copies the value to the host after step `made`, releases it before step `gone`, and has it back
// on the device before step `back`.
Schedule MovedBetween(const TracedPlan& traced, TensorId value, size_t made, size_t gone,
                      size_t back);

// Leaves out all transfers of the value, which then stays on the device while the plan moves it.
Schedule LeftOnDevice(const TracedPlan& traced, TensorId value);

// Limit of measuring, in steps of schedules: less than a second.
inline constexpr int64_t kWhatIfSteps = 4'000'000;

}  // namespace ckplan
