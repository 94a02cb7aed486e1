// ckexec: parses, runs, and turns errors into exit codes.
#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "cli/ckexec/commands.h"
#include "cli/common/exit_code.h"
#include "cli/common/guard.h"
#include "cli/common/terminal.h"

namespace ckplan {
namespace {

constexpr std::string_view kProgram = "ckexec";

// Ends at once: a step of a large model takes long, and files appear whole or not at all. May do no
// more than what a signal handler may.
extern "C" void EndInterrupted(int) {
  constexpr std::string_view kMessage = "\nckexec: interrupted; nothing was written\n";
  const std::string_view shown = isatty(STDERR_FILENO) != 0 ? kMessage : kMessage.substr(1);
  [[maybe_unused]] const ssize_t count = write(STDERR_FILENO, shown.data(), shown.size());
  _exit(static_cast<int>(ExitCode::kInterrupted));
}

int RunAndTell(std::vector<std::string> arguments) {
  const Result<ExitCode> code = RunExec(std::move(arguments));
  if (code.ok()) return static_cast<int>(*code);
  PrintError(code.error(), kProgram);
  return static_cast<int>(ExitCodeOf(code.error().code));
}

}  // namespace
}  // namespace ckplan

int main(int argc, char** argv) {
  signal(SIGINT, ckplan::EndInterrupted);
  return ckplan::RunGuarded(ckplan::kProgram, [&] {
    return ckplan::RunAndTell(std::vector<std::string>(argv + 1, argv + argc));
  });
}
