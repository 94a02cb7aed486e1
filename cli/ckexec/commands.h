// ckexec's command table. Dispatch, `ckexec --help`, completions, manual pages and "did you mean"
// use it.
#pragma once

#include <string>
#include <vector>

#include "cli/ckexec/options.h"
#include "cli/common/command_line.h"
#include "cli/common/exit_code.h"
#include "cli/common/guard.h"
#include "cli/common/self_description.h"
#include "cli/common/terminal.h"
#include "lib/base/result.h"

namespace ckplan {

// What ckexec reports when memory runs out, also in tests.
inline constexpr GuardedProgram kGuardedExec{"ckexec", ExitCode::kInfeasible,
                                             "use a smaller batch or model"};

// `arguments` excludes the program's name.
Result<ExitCode> RunExec(std::vector<std::string> arguments);

// Describes the program for completions and manual pages.
ProgramDescription DescribeExec();

// Each command has its own file, such as profile_command.cc; small ones are in commands.cc.
void AddExecCompletionOptions(CommandLine& line, ExecOptions& options);
void AddExecManOptions(CommandLine& line, ExecOptions& options);
void AddOpsOptions(CommandLine& line, ExecOptions& options);
void AddProfileOptions(CommandLine& line, ExecOptions& options);
void AddRunOptions(CommandLine& line, ExecOptions& options);
void AddValidateOptions(CommandLine& line, ExecOptions& options);
Result<ExitCode> RunExecCompletion(const ExecOptions& options, const Screen& screen);
Result<ExitCode> RunExecMan(const ExecOptions& options, const Screen& screen);
Result<ExitCode> RunOps(const ExecOptions& options, const Screen& screen);
Result<ExitCode> RunProfile(const ExecOptions& options, const Screen& screen);
Result<ExitCode> RunRun(const ExecOptions& options, const Screen& screen);
Result<ExitCode> RunValidate(const ExecOptions& options, const Screen& screen);

// Option groups that several commands share.
void AddBackendOptions(CommandLine& line, ExecOptions& options);  // --backend to --seed
void AddPlanCostOption(CommandLine& line, ExecOptions& options);  // --cost of the plan
void AddDimOptions(CommandLine& line, ExecOptions& options);      // -D, --input-shape, --batch
void AddExecScreenOptions(CommandLine& line, ExecOptions& options);

}  // namespace ckplan
