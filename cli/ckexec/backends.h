// The backends that this ckexec was built with.
#pragma once

#include <memory>
#include <vector>

#include "cli/ckexec/options.h"
#include "lib/backend/backend.h"
#include "lib/base/result.h"

namespace ckplan {

// kUsage: an option that is not the backend's, or a value that none takes. kUnsupported: this build
// or this machine has not the backend.
Result<std::unique_ptr<Backend>> MakeBackend(const ExecOptions& options);

// Its operators. kUnsupported: this build has not the backend; the machine's GPU is not asked for.
Result<std::vector<OpSupport>> OperatorsOf(const std::string& backend);

}  // namespace ckplan
