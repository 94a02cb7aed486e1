// ckplan completion and ckplan man: what is made of the table of commands besides --help.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/ckplan/commands.h"
#include "cli/common/completion.h"
#include "cli/common/man_page.h"
#include "lib/base/nearest_name.h"

namespace ckplan {
namespace {

std::vector<std::string> ShellNames() {
  std::vector<std::string> names;
  for (const Shell& shell : AllShells()) names.emplace_back(shell.name);
  return names;
}

Error NoneOf(std::string_view what, const std::string& name,
             const std::vector<std::string>& names) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string meant = DidYouMean(name, views);
  return MakeError(ErrorCode::kUsage, fmt::format("there is no {} \"{}\"{} are {}", what, name,
                                                  meant.empty() ? "; known" : meant + " Known",
                                                  fmt::join(names, ", ")));
}

}  // namespace

void AddCompletionOptions(CommandLine& line, Options& options) {
  line.Positional("SHELL", fmt::format("{}", fmt::join(ShellNames(), ", ")), &options.name);
}

Result<ExitCode> RunCompletion(const Options& options, const Screen& screen) {
  for (const Shell& shell : AllShells()) {
    if (shell.name != options.name) continue;
    CKPLAN_RETURN_IF_ERROR(screen.Print(shell.script(DescribeProgram())));
    return ExitCode::kOk;
  }
  return NoneOf("completion for", options.name, ShellNames());
}

void AddManOptions(CommandLine& line, Options& options) {
  line.OptionalPositional("COMMAND", "the command to describe (default: the program)",
                          &options.name);
}

Result<ExitCode> RunMan(const Options& options, const Screen& screen) {
  const ProgramDescription program = DescribeProgram();
  if (options.name.empty()) {
    CKPLAN_RETURN_IF_ERROR(screen.Print(ProgramManPage(program)));
    return ExitCode::kOk;
  }
  std::vector<std::string> names;
  for (const CommandDescription& command : program.commands) {
    names.push_back(WordOf(command));
    if (names.back() != options.name) continue;
    CKPLAN_RETURN_IF_ERROR(screen.Print(CommandManPage(program, command)));
    return ExitCode::kOk;
  }
  return NoneOf("command", options.name, names);
}

}  // namespace ckplan
