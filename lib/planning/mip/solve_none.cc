// For builds without HiGHS.
#include "lib/planning/mip/mip.h"

namespace ckplan {

bool HasMipSolver() { return false; }

Result<MipOutcome> SolveMip(const MipModel&, const MipLimits&, const MipOptions&) {
  return MakeError(
      ErrorCode::kUnsupported,
      "ckplan was built without the mixed-integer solver HiGHS; see docs/dependencies.md");
}

}  // namespace ckplan
