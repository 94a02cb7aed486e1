// ckplan completion and ckplan man: what is made of the table of commands besides --help.
#include "cli/ckplan/commands.h"
#include "cli/common/self_description.h"

namespace ckplan {

void AddCompletionOptions(CommandLine& line, Options& options) {
  AddShellName(line, &options.name);
}

Result<ExitCode> RunCompletion(const Options& options, const Screen& screen) {
  return PrintCompletion(DescribeProgram(), options.name, screen);
}

void AddManOptions(CommandLine& line, Options& options) { AddCommandName(line, &options.name); }

Result<ExitCode> RunMan(const Options& options, const Screen& screen) {
  return PrintManPage(DescribeProgram(), options.name, screen);
}

}  // namespace ckplan
