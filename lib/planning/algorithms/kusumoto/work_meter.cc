#include "lib/planning/algorithms/kusumoto/work_meter.h"

#include <fmt/format.h>

namespace ckplan {

bool WorkMeter::is_over() const { return limits_.stop.stop_requested() || has_done_too_much(); }

Result<Done> WorkMeter::Check() const {
  if (limits_.stop.stop_requested()) return MakeError(ErrorCode::kTimeout, "stopped");
  if (has_done_too_much()) {
    return MakeError(ErrorCode::kUnsupported,
                     fmt::format("the search over {} lower sets takes more than {} transitions",
                                 lower_sets_, limits_.max_transitions));
  }
  return Done{};
}

}  // namespace ckplan
