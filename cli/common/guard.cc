#include "cli/common/guard.h"

#include <fmt/format.h>

#include <exception>
#include <new>

#include "cli/common/terminal.h"
#include "lib/base/out_of_memory.h"

namespace ckplan {

int RunGuarded(std::string_view name, const std::function<int()>& program) {
  try {
    return program();
  } catch (const OutOfMemory& shortage) {
    PrintError(MakeError(ErrorCode::kInfeasible, shortage.what()), name);
    return static_cast<int>(ExitCode::kInfeasible);
  } catch (const std::bad_alloc&) {
    PrintError(MakeError(ErrorCode::kUnsupported,
                         "out of memory; another algorithm (`ckplan algos`) may need less"),
               name);
    return static_cast<int>(ExitCode::kInput);
  } catch (const std::exception& fault) {
    PrintError(MakeError(ErrorCode::kInternal,
                         fmt::format("internal fault: {}; please report it with the command line "
                                     "and the model",
                                     fault.what())),
               name);
    return static_cast<int>(ExitCode::kInternal);
  }
}

int RunProgram(std::string_view name, Program program, int argc, char** argv) {
  return RunGuarded(name, [&] {
    const Result<ExitCode> code = program(std::vector<std::string>(argv + 1, argv + argc));
    if (code.ok()) return static_cast<int>(*code);
    PrintError(code.error(), name);
    return static_cast<int>(ExitCodeOf(code.error().code));
  });
}

}  // namespace ckplan
