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

// Declares the option that chooses a backend. The default is the CPU backend, or the CUDA backend
// in builds without the CPU one. `what` tells the help what is done with the backend.
void AddBackendChoice(CommandLine& line, std::string_view what, std::string* backend);

// kUsage: an option that the chosen backend does not have, or a value that no backend accepts.
// kUnsupported: this build or this machine does not have the backend.
Result<std::unique_ptr<Backend>> MakeBackend(const ExecOptions& options);

// The operators of that backend. kUnsupported: this build does not have the backend. Works without
// the backend's GPU.
Result<std::vector<OpSupport>> OperatorsOf(const std::string& backend);

}  // namespace ckplan
