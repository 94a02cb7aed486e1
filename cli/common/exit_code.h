// The exit statuses of all programs, in one place. They are part of the stable interface:
// docs/plan-format.md lists them, --help prints them, and tests reach each of them.
#pragma once

#include <fmt/format.h>

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/result.h"

namespace ckplan {

enum class ExitCode : int {
  kOk = 0,
  kDifferent = 1,
  kUsage = 2,
  kInput = 3,
  kInfeasible = 4,
  kTimeLimit = 5,
  kCheckFailed = 6,
  kInternal = 70,  // Also in lib/base/check.cc, which cannot include cli/.
  kInterrupted = 130,
};

struct ExitCodeMeaning {
  ExitCode code;
  std::string_view meaning;
};

inline constexpr std::array kExitCodeMeanings = {
    ExitCodeMeaning{ExitCode::kOk, "done"},
    ExitCodeMeaning{ExitCode::kDifferent,
                    "a --fail-on limit was exceeded, or diff --exit-code found a difference"},
    ExitCodeMeaning{ExitCode::kUsage, "invalid command line"},
    ExitCodeMeaning{ExitCode::kInput,
                    "a file cannot be read, written, or planned (damaged, unsupported, too large)"},
    ExitCodeMeaning{ExitCode::kInfeasible, "no plan fits the budget; the message names the least"},
    ExitCodeMeaning{ExitCode::kTimeLimit, "the time limit ran out before a plan was found"},
    ExitCodeMeaning{ExitCode::kCheckFailed, "a plan fails the check, or is for another model"},
    ExitCodeMeaning{ExitCode::kInternal, "internal error; please report it"},
    ExitCodeMeaning{ExitCode::kInterrupted, "interrupted"},
};

// Returns the table at the end of a program's help, without a final line feed.
inline std::string ExitCodeLines(std::span<const ExitCodeMeaning> meanings) {
  std::string text = "Exit codes:\n";
  for (const ExitCodeMeaning& row : meanings) {
    text += fmt::format("  {:>3}  {}\n", static_cast<int>(row.code), row.meaning);
  }
  text.pop_back();
  return text;
}

constexpr ExitCode ExitCodeOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage:
      return ExitCode::kUsage;
    case ErrorCode::kInvalidInput:
    case ErrorCode::kUnsupported:
    case ErrorCode::kIo:
      return ExitCode::kInput;
    case ErrorCode::kInfeasible:
      return ExitCode::kInfeasible;
    case ErrorCode::kTimeout:
      return ExitCode::kTimeLimit;
    case ErrorCode::kCheckFailed:
      return ExitCode::kCheckFailed;
    case ErrorCode::kInternal:
      return ExitCode::kInternal;
  }
  return ExitCode::kInternal;
}

}  // namespace ckplan
