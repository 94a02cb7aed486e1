// What `ckplan fit` prints: one row for keeping everything, and one for each added time. Sizes have
// a rate as well: samples, tokens or sizes per second.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/common/terminal.h"
#include "lib/planning/planner/fit.h"

namespace ckplan {

// The unit of a fit's rate: samples, tokens, or units of the dimension.
//
// Models do not say what their dimensions are, so this goes by their names: N, B or batch is a
// batch of samples, L, S, T, seq or sequence_length a sequence of tokens. Only if both are open
// dimensions of the model, and no other one is a sequence, is the product a number of tokens. In
// case of doubt a rate counts sizes.
struct FitRate {
  std::string name;          // For the heading of a column: "samples/s", "tokens/s", "H/s".
  std::string unit;          // For programs: "samples/s", "tokens/s", "1/s".
  int64_t count_of_one = 1;  // Samples or tokens per unit of the dimension.
};

// Rates are per second, or "/cost" per unit of cost for costs without a unit of time.
FitRate RateOf(const Fit& fit);

// Returns the rate of a row that has a size.
double Throughput(const Fit& fit, const FitRow& row);

// Whether a dimension of this name is a batch of samples.
bool IsBatchName(const std::string& dim);

struct FitReport {
  Fit fit;
  int64_t multiple_of = 1;
  bool is_verbose = false;  // Says why the model takes no larger size.
};

std::string FitText(const FitReport& report, const Terminal& terminal);
std::string FitMarkdown(const FitReport& report);
std::string FitCsv(const FitReport& report);
std::string FitJson(const FitReport& report);  // schemas/fit.schema.json

// The error if no size fits: why, and what would help.
Error NothingFitsError(const FitReport& report);

}  // namespace ckplan
