// The backends that this ckexec was built with.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/ckexec/options.h"
#include "cli/common/command_line.h"
#include "lib/backend/backend.h"
#include "lib/base/result.h"

namespace ckplan {

// The option that chooses one of them; the CPU backend if nothing is said, or CUDA's where this
// build has not that. `what`: what is done with it, for the help.
void AddBackendChoice(CommandLine& line, std::string_view what, std::string* backend);

// kUsage: an option that is not the backend's, or a value that none takes. kUnsupported: this build
// or this machine has not the backend.
Result<std::unique_ptr<Backend>> MakeBackend(const ExecOptions& options);

// Its operators. kUnsupported: this build has not the backend; the machine's GPU is not asked for.
Result<std::vector<OpSupport>> OperatorsOf(const std::string& backend);

}  // namespace ckplan
