// ckexec profile --device: the workspaces of a model's operators on a GPU that is not there.
#pragma once

#include "cli/ckexec/options.h"
#include "cli/common/exit_code.h"
#include "cli/common/terminal.h"
#include "lib/base/result.h"

namespace ckplan {

// Prepares the operators for the device, without running any, and writes what they need, as
// `ckplan --workspaces` reads it. kUsage: an option that is for measurements.
Result<ExitCode> RunDeviceProfile(const ExecOptions& options, const Screen& screen);

}  // namespace ckplan
