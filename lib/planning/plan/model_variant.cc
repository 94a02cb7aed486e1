#include "lib/planning/plan/model_variant.h"

#include "lib/base/text.h"

namespace ckplan {

std::map<std::string, int64_t> OpsetsInFiles(const ModelIdentity& model) {
  std::map<std::string, int64_t> opsets;
  for (const auto& [domain, version] : model.opsets) {
    opsets.emplace(WellFormedUtf8(domain), version);
  }
  return opsets;
}

}  // namespace ckplan
