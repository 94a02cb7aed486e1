// The backends with which this ckexec was built.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/ckexec/options.h"
#include "cli/common/command_line.h"
#include "lib/base/result.h"
#include "lib/executor/backend/backend.h"

namespace ckplan {

// Declares the option that chooses a backend. The default is the CPU backend, or the CUDA backend
// in builds without the CPU one. `what` says in the help what the backend is used for.
void AddBackendChoice(CommandLine& line, std::string_view what, std::string* backend);

// kUsage: an option that the chosen backend does not have, or a value that no backend accepts.
// kUnsupported: this build or this machine lacks the backend.
Result<std::unique_ptr<Backend>> MakeBackend(const ExecOptions& options);

// The CUDA backend for a GPU that this machine lacks; it prepares operators and runs none.
struct DescribedBackend {
  std::string device;  // Its name in the table of devices.
  std::unique_ptr<Backend> backend;
  int64_t product_workspace_bytes = 0;  // What cuBLAS is given for each product.
};

// Returns the backend for the device that the options name. kUsage: there is no such device.
// kUnsupported: this build has no CUDA backend, or there is no cuDNN that knows the device.
Result<DescribedBackend> MakeDescribedBackend(const ExecOptions& options);

// Returns the operators of that backend, even on machines without its GPU. kUnsupported: this build
// does not have the backend.
Result<std::vector<OpSupport>> OperatorsOf(const std::string& backend);

}  // namespace ckplan
