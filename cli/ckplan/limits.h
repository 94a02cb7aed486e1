// Limits of ckplan's commands: --time-limit, --memory-limit and Ctrl-C.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "cli/ckplan/options.h"
#include "cli/common/exit_code.h"
#include "cli/common/interrupt.h"
#include "cli/common/terminal.h"
#include "lib/files/input/load_source.h"
#include "lib/planning/planner/source.h"

namespace ckplan {

void AddMemoryOption(CommandLine& line, Options& options);  // --memory-limit

// Returns the value of --time-limit, or nothing if it is not given.
Result<std::optional<std::chrono::milliseconds>> TimeLimitOf(const Options& options);

// Says that the time limit passed; `rest` ends the sentence and says what to do. Without a time
// limit nothing may end like that, so then it is kInternal.
Error TimeLimitPassed(const Options& options, std::string_view rest = "; give more time");

// Returns the result of work under a time limit; its kTimeout says that the limit has passed.
template <typename T>
Result<T> InTime(Result<T> result, const Options& options) {
  if (result.ok() || result.error().code != ErrorCode::kTimeout) return result;
  return TimeLimitPassed(options);
}

// Calls LoadSource; its kTimeout says that the time limit has passed.
Result<Source> LoadInTime(const std::string& path, const PlanRequest& request,
                          const Options& options);

// Reports that Ctrl-C has ended the command.
ExitCode Interrupted();

}  // namespace ckplan
