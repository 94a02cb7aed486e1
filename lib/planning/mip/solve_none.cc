// For builds without HiGHS.
#include "lib/planning/mip/mip.h"

namespace ckplan {

bool HasMipSolver() { return false; }

Result<MipOutcome> SolveMip(const MipModel&, const MipLimits&, const MipOptions&) {
  return MakeError(ErrorCode::kUnsupported,
                   "this ckplan is built without HiGHS, which solves mixed-integer programs; "
                   "docs/dependencies.md says how to obtain it");
}

}  // namespace ckplan
