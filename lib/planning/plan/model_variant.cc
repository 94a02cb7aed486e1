#include "lib/planning/plan/model_variant.h"

#include <fmt/format.h>

#include "lib/base/text.h"

namespace ckplan {

std::map<std::string, int64_t> OpsetsInFiles(const ModelIdentity& model) {
  std::map<std::string, int64_t> opsets;
  for (const auto& [domain, version] : model.opsets) {
    opsets.emplace(WellFormedUtf8(domain), version);
  }
  return opsets;
}

Result<Done> CheckSameModel(const ModelIdentity& planned, const std::string& path,
                            const std::string& sha256) {
  if (sha256 == planned.sha256) return Done{};
  constexpr size_t kShownDigits = 12;
  return MakeError(ErrorCode::kCheckFailed,
                   fmt::format("the plan is for another model: \"{}\" with sha256 {}..., but "
                               "\"{}\" has {}...; plan the model again",
                               planned.name, planned.sha256.substr(0, kShownDigits), path,
                               sha256.substr(0, kShownDigits)));
}

}  // namespace ckplan
