// Sizes, budgets and durations as people type them, read strictly.
//
//   16GiB = 16 x 2^30   16GB = 16 x 10^9   16KiB   512   1.5GiB        bytes; fractions of a byte
//   60%  62.5%          of keep-all's peak                             are cut off, exactly
//   min                 the least that the algorithm reaches
//   balanced            no limit, but the least product of peak and time
//
// A bare "16G" is refused, because people use it for both. All arithmetic is on integers. Every
// failure is kUsage, and its message names the accepted forms and what was probably meant.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/plan/budget.h"

namespace ckplan {

// Messages name `flag`: "--budget".
Result<Bytes> ParseSize(std::string_view text, std::string_view flag);

struct BudgetForms {
  bool percent = true;
  bool min = true;
  bool balanced = false;
};
Result<Budget> ParseBudget(std::string_view text, std::string_view flag, BudgetForms forms);

// Returns what was probably meant by a text that is no size, percentage or word: "16GiB" for "16G".
// Returns "" if there is no good guess.
std::string SuggestedBudget(std::string_view text, BudgetForms forms);

// A whole number without a unit is a number of bytes. If it is far below `typical`, returns an
// explanation: "\"60\" is 60 bytes; did you mean \"60%\"?". Otherwise returns "".
std::string BareNumberHint(std::string_view text, Bytes typical, BudgetForms forms);

// Parses "90s", "500ms" or "2min", up to a day.
Result<std::chrono::milliseconds> ParseDuration(std::string_view text, std::string_view flag);

// Parses a whole number in [low, high], without sign or blanks.
Result<int64_t> ParseInteger(std::string_view text, std::string_view flag, int64_t low,
                             int64_t high);

}  // namespace ckplan
