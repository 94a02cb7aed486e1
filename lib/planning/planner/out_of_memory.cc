#include "lib/planning/planner/out_of_memory.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "lib/base/text.h"

namespace ckplan {

Error OutOfMemoryError(const SolverInfo& info, const SolveLimits& limits) {
  const std::string available = limits.memory
                                    ? fmt::format("the limit of {}", HumanBytes(*limits.memory))
                                    : std::string("is available");
  return Error{ErrorCode::kUnsupported,
               fmt::format("{} needs more memory than {}; another algorithm may need less",
                           info.name, available),
               {},
               {"or raise", {{std::string(kMemoryLimitField), ""}}}};
}

bool IsOutOfMemory(const Error& error) {
  const std::vector<Remedy::Setting>& settings = error.remedy.settings;
  return !settings.empty() && settings.front().name == kMemoryLimitField;
}

}  // namespace ckplan
