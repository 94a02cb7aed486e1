#include "lib/algorithms/kusumoto/work_meter.h"

#include <fmt/format.h>

namespace ckplan {

Result<Done> WorkMeter::Check() const {
  if (limits_.stop.stop_requested()) return MakeError(ErrorCode::kTimeout, "stopped");
  if (limits_.max_transitions > 0 && transitions_ > limits_.max_transitions) {
    return MakeError(ErrorCode::kUnsupported,
                     fmt::format("the search over {} lower sets takes more than {} transitions",
                                 lower_sets_, limits_.max_transitions));
  }
  return Done{};
}

}  // namespace ckplan
