// How ckexec ends where memory runs out: for its main(), and for that of tests.
#pragma once

#include "cli/common/exit_code.h"
#include "cli/common/guard.h"

namespace ckplan {

inline constexpr GuardedProgram kGuardedExec{"ckexec", ExitCode::kInfeasible,
                                             "take a smaller batch or model"};

}  // namespace ckplan
