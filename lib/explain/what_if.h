// What a plan would need and take if one decision in it were another. Each change makes a whole
// schedule, which the simulator measures, so what is said of it is exact; but it is the plan
// changed in one place, and not the best plan with that decision.
//
// Both changes are of plans that free by liveness.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/explain/traced_plan.h"
#include "lib/schedule/schedule.h"

namespace ckplan {

// The memory of the version is released behind `step`, at which it must be in memory, and who reads
// it later gets it from another run of its maker. What that run reads, and is not in memory by
// then, is run again as well, just before. Nothing: something of it must not run twice, by the
// graph or by a constraint, which that maker itself may break.
std::optional<Schedule> FreedBehind(const TracedPlan& traced, int32_t version, int32_t step);

// The version comes from a run of its maker beyond the first: that run is left out, and what ran
// for it alone, so that the version before stays in memory.
Schedule KeptInstead(const TracedPlan& traced, int32_t version);

// The search for what may change: measuring ends after so many steps of schedules, less than a
// second.
inline constexpr int64_t kWhatIfSteps = 4'000'000;

}  // namespace ckplan
