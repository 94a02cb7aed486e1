// For builds without HiGHS.
#include "lib/planning/mip/mip.h"

namespace ckplan {

bool HasMipSolver() { return false; }

Result<MipOutcome> SolveMip(const MipModel&, const MipLimits&, const MipOptions&) {
  return MakeError(
      ErrorCode::kUnsupported,
      "this ckplan was built without HiGHS, the mixed-integer solver; see docs/dependencies.md");
}

}  // namespace ckplan
