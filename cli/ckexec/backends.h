// The backends that this ckexec was built with.
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

// Declares the option that selects a backend. The default is the CPU backend, or the CUDA backend
// in builds without the CPU backend. `what` is its help text.
void AddBackendChoice(CommandLine& line, std::string_view what, std::string* backend);

// kUsage: an option doesn't apply to the backend, or no backend accepts its value. kUnsupported:
// this build or machine lacks the backend.
Result<std::unique_ptr<Backend>> MakeBackend(const ExecOptions& options);

// The CUDA backend for a GPU that this machine doesn't have. It prepares operators but cannot run
// them.
struct DescribedBackend {
  std::string device;  // Its name in the table of devices.
  std::unique_ptr<Backend> backend;
  int64_t product_workspace_bytes = 0;  // cuBLAS's workspace for each product.
};

// Returns the backend for the device in the options. kUsage: the device is unknown. kUnsupported:
// this build has no CUDA backend, or no cuDNN knows the device.
Result<DescribedBackend> MakeDescribedBackend(const ExecOptions& options);

// Lists the backend's operators, even on machines without its GPU. kUnsupported: this build does
// not have the backend.
Result<std::vector<OpSupport>> OperatorsOf(const std::string& backend);

}  // namespace ckplan
