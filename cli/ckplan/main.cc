// ckplan: finds the command, runs it, and turns errors into exit codes. No algorithm lives here.
#include <fmt/format.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include "cli/ckplan/commands.h"
#include "cli/common/command_line.h"
#include "cli/common/guard.h"
#include "cli/common/message.h"
#include "lib/base/text.h"

namespace ckplan {
namespace {

constexpr GuardedProgram kProgram{"ckplan"};

// A word that is not a command, an option or a file was meant as a command.
Result<Done> CheckIsSource(const std::string& word) {
  if (access(word.c_str(), F_OK) == 0) return Done{};
  if (const std::string_view advice = AdviceOnCommand(word); !advice.empty()) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("ckplan has no command \"{}\"; {}", word, advice));
  }
  const bool looks_like_file = word.find_first_of("./-") != std::string::npos;
  if (looks_like_file) return Done{};
  std::vector<std::string_view> names;
  for (const Command& command : AllCommands()) names.push_back(command.name);
  names.push_back("help");
  return Error{
      ErrorCode::kUsage,
      fmt::format("\"{}\" is neither a command nor a file{}", word, DidYouMean(word, names)),
      {"`ckplan --help` lists the commands"}};
}

Result<ExitCode> Run(std::vector<std::string> typed) {
  SetMessageForm(MessageFormIn(typed));
  const Screen screen = DetectScreen("auto", /*is_quiet=*/false, /*has_no_progress=*/false);
  std::vector<std::string> arguments = WithoutHelpWord(std::move(typed));
  const std::string first = arguments.empty() ? "" : arguments.front();
  if (first == "-V" || first == "--version") {
    CKPLAN_RETURN_IF_ERROR(screen.Print("ckplan " CKPLAN_VERSION "\n"));
    return ExitCode::kOk;
  }
  if (first == "-h" || first == "--help") {
    CKPLAN_RETURN_IF_ERROR(screen.PrintHelp(ProgramHelp()));
    return ExitCode::kOk;
  }
  if ((first == "-v" || first == "--verbose" || first == "-version") && arguments.size() == 1) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("{} needs a model; `ckplan --version` prints the "
                                 "version",
                                 first));
  }
  if (first.empty()) {
    return Error{ErrorCode::kUsage,
                 "no model given; type ckplan MODEL, where MODEL is an ONNX file",
                 {"`ckplan --help` lists the commands"}};
  }
  if (const Command* command = FindCommand(first)) {
    arguments.erase(arguments.begin());
    return RunCommand(*command, std::move(arguments));
  }
  CKPLAN_RETURN_IF_ERROR(CheckIsSource(first));
  return RunCommand(*FindCommand(kDefaultCommand), std::move(arguments));
}

}  // namespace
}  // namespace ckplan

int main(int argc, char** argv) {
  return ckplan::RunProgram(ckplan::kProgram, ckplan::Run, argc, argv);
}
