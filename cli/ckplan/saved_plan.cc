#include "cli/ckplan/saved_plan.h"

#include <fmt/format.h>

#include "cli/common/files.h"

namespace ckplan {

Result<Done> CheckSavedPlan(const PlanFile& file, const std::string& path) {
  const std::vector<std::string> faults = FaultsOfPlanFile(file);
  if (faults.empty()) return Done{};
  return Error{ErrorCode::kCheckFailed,
               fmt::format("{} fails the check; nothing was written", path),
               {faults.front(), fmt::format("run `ckplan check {}` for details", path)}};
}

Result<Done> CheckSavedPlan(const PlanFile& file, const std::string& path, const Outputs& outputs) {
  CKPLAN_RETURN_IF_ERROR(outputs.CheckApartFrom(InputsOf(file.model_path)));
  CKPLAN_RETURN_IF_ERROR(outputs.CheckFor(file.source));
  return CheckSavedPlan(file, path);
}

}  // namespace ckplan
