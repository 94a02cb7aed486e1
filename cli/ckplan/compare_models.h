// The input and results of `ckplan compare`: models, each with every requested combination of
// sizes, and one comparison for each.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cli/ckplan/options.h"
#include "cli/common/request_grid.h"
#include "cli/common/terminal.h"
#include "lib/base/result.h"
#include "lib/files/emit/json_compare.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/source.h"

namespace ckplan {

// The plans of one or more algorithms, under one or more budgets, for one or more models.

// The result of one algorithm under one budget.
struct AlgorithmRow : ComparedRow {
  const SolverInfo* info = nullptr;
  std::optional<Error> error;  // Why there is no plan.
  double seconds = 0;
  bool has_time_limit = false;  // Otherwise only its work was limited.
};

// All answers for one model with one size of each dimension.
struct Comparison {
  std::string model;  // The name of its file.
  DimSizes dims;
  std::optional<Error> unread;  // Why the model was not read; the rest is then empty.
  std::optional<Source> source;
  PlanRequest request;  // As typed, with the first of several budgets.
  Bytes baseline_peak;
  bool has_cuts = false;  // Set for algorithms on chains.
  std::vector<AlgorithmRow> rows;

  bool has_plan() const {
    return std::any_of(rows.begin(), rows.end(),
                       [](const AlgorithmRow& row) { return row.plan.has_value(); });
  }
};

struct ComparisonSet {
  std::vector<Comparison> all;       // In the order of the command line; at least one.
  bool has_several = false;          // Several models or sizes were typed.
  std::string budget_field;          // "budget"; empty if no budget was typed.
  std::vector<std::string> budgets;  // The budgets as typed; one empty string for none.
  bool shows_times = false;

  bool has_several_budgets() const { return budgets.size() > 1; }
  bool is_single() const { return !has_several && !has_several_budgets(); }
  // The heading of the column of budgets: "added time".
  std::string BudgetHeading() const {
    std::string heading = budget_field;
    std::replace(heading.begin(), heading.end(), '_', ' ');
    return heading;
  }
};

// The request.
struct CompareJob {
  std::vector<std::string> paths;  // Each once, in the order typed.
  RequestGrid grid;
  std::vector<const SolverInfo*> algorithms;
  bool names_algorithms = false;
  // For each algorithm. Without it, every algorithm but `best` is limited in its work.
  std::optional<std::chrono::milliseconds> time_limit;

  bool has_several_models() const { return paths.size() > 1; }
  bool has_several() const { return has_several_models() || grid.sizes.size() > 1; }
};

// Returns comparisons without rows, or nothing if Ctrl-C has ended the reading. If there are
// several models or sizes, one that cannot be read is a comparison that says so; otherwise the
// error is returned. kUsage: the request does not apply to a model, or a dimension is of none of
// them.
Result<std::optional<std::vector<Comparison>>> ReadModels(const Options& options,
                                                          const CompareJob& job,
                                                          const Screen& screen);

}  // namespace ckplan
