// ckexec: parses the command line, runs a command, and turns errors into exit codes.
#include <signal.h>
#include <unistd.h>

#include <string_view>

#include "cli/ckexec/commands.h"
#include "cli/common/exit_code.h"
#include "cli/common/guard.h"
#include "lib/base/file.h"

namespace ckplan {
namespace {

// Ends the program at once, because a step of a large model takes long. Output files are written
// completely or not at all. Only calls functions that are safe in a signal handler.
extern "C" void EndInterrupted(int) {
  TemporaryName::RemoveAll();
  constexpr std::string_view kMessage = "\nckexec: interrupted; nothing was written\n";
  const std::string_view shown = isatty(STDERR_FILENO) != 0 ? kMessage : kMessage.substr(1);
  [[maybe_unused]] const ssize_t count = write(STDERR_FILENO, shown.data(), shown.size());
  _exit(static_cast<int>(ExitCode::kInterrupted));
}

}  // namespace
}  // namespace ckplan

int main(int argc, char** argv) {
  signal(SIGINT, ckplan::EndInterrupted);
  return ckplan::RunProgram(ckplan::kGuardedExec, ckplan::RunExec, argc, argv);
}
