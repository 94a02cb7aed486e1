// ckexec: parses, runs, and turns errors into exit codes.
#include <string>
#include <vector>

#include "cli/ckexec/commands.h"
#include "cli/common/exit_code.h"
#include "cli/common/guard.h"
#include "cli/common/terminal.h"

namespace ckplan {
namespace {

constexpr std::string_view kProgram = "ckexec";

int RunAndTell(std::vector<std::string> arguments) {
  const Result<ExitCode> code = RunExec(std::move(arguments));
  if (code.ok()) return static_cast<int>(*code);
  PrintError(code.error(), kProgram);
  return static_cast<int>(ExitCodeOf(code.error().code));
}

}  // namespace
}  // namespace ckplan

int main(int argc, char** argv) {
  return ckplan::RunGuarded(ckplan::kProgram, [&] {
    return ckplan::RunAndTell(std::vector<std::string>(argv + 1, argv + argc));
  });
}
