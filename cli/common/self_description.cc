#include "cli/common/self_description.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <vector>

#include "cli/common/completion.h"
#include "cli/common/man_page.h"
#include "lib/base/text.h"

namespace ckplan {
namespace {

std::vector<std::string_view> ShellNames() {
  std::vector<std::string_view> names;
  for (const Shell& shell : AllShells()) names.push_back(shell.name);
  return names;
}

}  // namespace

void AddShellName(CommandLine& line, std::string* shell) {
  line.Positional("SHELL", fmt::format("{}", fmt::join(ShellNames(), ", ")), shell);
}

Result<ExitCode> PrintCompletion(const ProgramDescription& program, const std::string& shell,
                                 const Screen& screen) {
  for (const Shell& known : AllShells()) {
    if (known.name != shell) continue;
    CKPLAN_RETURN_IF_ERROR(screen.Print(known.script(program)));
    return ExitCode::kOk;
  }
  return MakeError(ErrorCode::kUsage, "no completion for " + NoneOf(shell, ShellNames()));
}

void AddCommandName(CommandLine& line, std::string* command) {
  line.OptionalPositional("COMMAND", "the command to describe (default: the program)", command);
}

Result<ExitCode> PrintManPage(const ProgramDescription& program, const std::string& command,
                              const Screen& screen) {
  if (command.empty()) {
    CKPLAN_RETURN_IF_ERROR(screen.Print(ProgramManPage(program)));
    return ExitCode::kOk;
  }
  std::vector<std::string> names;
  for (const CommandDescription& known : program.commands) {
    names.push_back(WordOf(known));
    if (names.back() != command) continue;
    CKPLAN_RETURN_IF_ERROR(screen.Print(CommandManPage(program, known)));
    return ExitCode::kOk;
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  return MakeError(ErrorCode::kUsage, "there is no command " + NoneOf(command, views));
}

}  // namespace ckplan
