#include "cli/ckplan/saved_plan.h"

#include <fmt/format.h>

#include "cli/common/files.h"
#include "lib/files/input/plan_file.h"

namespace ckplan {

Result<Done> CheckSavedPlan(const PlanFile& file, const std::string& path) {
  const std::vector<std::string> faults = FindPlanFileFaults(file);
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

namespace {

Result<Done> CheckPairing(size_t plans, size_t models) {
  if (models <= 1 || models == plans) return Done{};
  return MakeError(ErrorCode::kUsage,
                   fmt::format("--model is given {} times for {} plans; give it once for all of "
                               "them, or once for each",
                               models, plans));
}

}  // namespace

Result<std::vector<PlanPath>> PlanPathsOf(const Options& options) {
  const std::vector<std::string>& names = options.plans;
  const std::vector<std::string>& models = options.models;
  CKPLAN_RETURN_IF_ERROR(CheckPairing(names.size(), models.size()));
  if (names.size() == 2 && models.empty() && !IsAnotherPlan(names[1], names[0])) {
    return std::vector<PlanPath>{{names[0], names[1]}};
  }
  std::vector<PlanPath> paths;
  for (size_t i = 0; i < names.size(); ++i) {
    const bool has_one = models.size() == 1;
    paths.push_back({names[i], models.empty() ? "" : models[has_one ? 0 : i]});
  }
  return paths;
}

}  // namespace ckplan
