#include "cli/ckplan/limits.h"

#include <fmt/format.h>

#include "cli/common/size_arg.h"
#include "lib/files/input/load_source.h"

namespace ckplan {

void AddMemoryOption(CommandLine& line, Options& options) {
  const CommandLine::Section section(line, kGlobalSection);
  line.Value(
      "--memory-limit", "SIZE",
      "limit on the memory that ckplan itself uses (default: three quarters of what is free)",
      &options.memory_limit);
}

Result<std::optional<std::chrono::milliseconds>> TimeLimitOf(const Options& options) {
  std::optional<std::chrono::milliseconds> limit;
  if (options.time_limit) {
    CKPLAN_ASSIGN_OR_RETURN(limit, ParseDuration(*options.time_limit, "--time-limit"));
  }
  return limit;
}

Error TimeLimitPassed(const Options& options, std::string_view rest) {
  if (!options.time_limit) {
    return MakeError(ErrorCode::kInternal,
                     "a search gave up without a time limit; please report it");
  }
  return MakeError(ErrorCode::kTimeout,
                   fmt::format("the time limit of {} passed{}", *options.time_limit, rest));
}

Result<Source> LoadInTime(const std::string& path, const PlanRequest& request,
                          const Options& options) {
  Result<Source> source = LoadSource(path, request);
  if (source.ok() || source.error().code != ErrorCode::kTimeout) return source;
  return TimeLimitPassed(options, fmt::format(" while reading \"{}\"; give more time", path));
}

ExitCode Interrupted() {
  constexpr ExitCode kCode = ExitCode::kInterrupted;
  PrintError(MakeError(ErrorCode::kTimeout, "interrupted; nothing was written"), "ckplan", kCode);
  return kCode;
}

}  // namespace ckplan
