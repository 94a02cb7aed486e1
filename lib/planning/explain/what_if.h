// The memory and time of a plan if one of its decisions were different. Each change creates a whole
// schedule, which the simulator measures, so the figures are exact. They describe this plan with
// one change, not the best plan with that decision.
//
// All changes require plans that free by liveness. With transfers, all but the last may break a
// rule of lib/problem/schedule/transfers.h and then can't be measured.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/planning/explain/traced_plan.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// Releases the version's memory after `step`, where it must be in memory. Later readers get it from
// a new run of its producer, and inputs of that run that are no longer in memory are recomputed
// just before it. Returns nullopt if that would rerun an operation that the graph or a constraint
// forbids to repeat; constraints do not apply to the producer itself.
std::optional<Schedule> ReleaseAfter(const TracedPlan& traced, int32_t version, int32_t step);

// Removes the run that creates the version, which must not be the first, and the runs that only it
// needed. The version before stays in memory instead.
Schedule KeepInstead(const TracedPlan& traced, int32_t version);

// Copies the value to the host after step `made`, releases it before step `gone`, and loads it
// before step `back`.
Schedule MoveBetween(const TracedPlan& traced, TensorId value, size_t made, size_t gone,
                     size_t back);

// Removes all transfers of the value, so that it stays on the device.
Schedule LeaveOnDevice(const TracedPlan& traced, TensorId value);

// Limit on measuring, in simulated steps: less than a second.
inline constexpr int64_t kWhatIfSteps = 4'000'000;

}  // namespace ckplan
