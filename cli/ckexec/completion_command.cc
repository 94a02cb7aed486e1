// ckexec completion and ckexec man: outputs made from the table of commands.
#include "cli/ckexec/commands.h"
#include "cli/common/self_description.h"

namespace ckplan {

void AddExecCompletionOptions(CommandLine& line, ExecOptions& options) {
  AddShellName(line, &options.name);
}

Result<ExitCode> RunExecCompletion(const ExecOptions& options, const Screen& screen) {
  return PrintCompletion(DescribeExec(), options.name, screen);
}

void AddExecManOptions(CommandLine& line, ExecOptions& options) {
  AddCommandName(line, &options.name);
}

Result<ExitCode> RunExecMan(const ExecOptions& options, const Screen& screen) {
  return PrintManPage(DescribeExec(), options.name, screen);
}

}  // namespace ckplan
