// Mixed-integer linear programs, and a solver of them: HiGHS (docs/dependencies.md), where ckplan
// is built with it.
//
//   minimise  sum of cost[j] * x[j]   where   lower[j] <= x[j] <= upper[j]        for each column
//   j,
//                                             lower[i] <= a[i] . x <= upper[i]    for each row i,
//                                             x[j] is whole where column j is an integer
//
//   MipModel model;                                   // the knapsack of 6x + 5y, 4x + 3y <= 6
//   const int x = model.AddColumn({.cost = -6, .upper = 1, .is_integer = true});
//   const int y = model.AddColumn({.cost = -5, .upper = 1, .is_integer = true});
//   model.AddRow(-kMipInfinity, 6, {{x, 4}, {y, 3}});
//   CKPLAN_ASSIGN_OR_RETURN(const MipOutcome outcome, SolveMip(model, {}));
//
// Guarantee  the same model, limits and start give the same outcome, bit by bit, whatever else the
//            machine does: one thread, a fixed seed, and limits on work instead of time. A stop
//            (lib/base/stop.h) comes when it comes, and ends a solve where it stands. Another
//            version of HiGHS, or another processor, may find another solution of the same cost.
// Tolerance  HiGHS computes in double precision: rows hold, and bounds are proven, to within
//            kMipTolerance. Whoever infers whole numbers from a bound leaves a margin for that.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "lib/base/result.h"

namespace ckplan {

inline constexpr double kMipInfinity = std::numeric_limits<double>::infinity();

// By how much a row or the bound of a column may be violated: HiGHS's own default.
inline constexpr double kMipTolerance = 1e-6;

struct MipColumn {
  double cost = 0;
  double lower = 0;
  double upper = kMipInfinity;
  bool is_integer = false;
};

struct MipEntry {
  int column = 0;
  double coefficient = 0;
};

struct MipRow {
  double lower = -kMipInfinity;
  double upper = kMipInfinity;
  std::vector<MipEntry> entries;  // By column, at most one for each.
};

// Numbers are finite, but for bounds; costs and coefficients are less than 1e15 in size, and
// coefficients below 1e-9 count as zero. SolveMip answers anything else by kInvalidInput.
class MipModel {
 public:
  // Columns and rows are numbered from 0 in the order in which they are added.
  int AddColumn(const MipColumn& column);
  // Entries come in any order; those of the same column add up.
  int AddRow(double lower, double upper, std::vector<MipEntry> entries);

  const std::vector<MipColumn>& columns() const { return columns_; }
  const std::vector<MipRow>& rows() const { return rows_; }

  // The cost of a solution.
  double Objective(std::span<const double> values) const;
  // Whether `values` satisfies every bound, row and integrality to within `tolerance`.
  bool IsFeasible(std::span<const double> values, double tolerance = kMipTolerance) const;

 private:
  std::vector<MipColumn> columns_;
  std::vector<MipRow> rows_;
};

// What an iteration of the simplex method counts as work, in a program of so many columns: about
// eight million a second.
constexpr int64_t IterationWork(size_t columns) { return static_cast<int64_t>(columns) + 2'000; }
// And a round of the search of an integer program, beside the iterations: at the root it makes many
// cuts, and tries heuristics. Cuts are made of sums of rows, so that it takes several times as long
// where rows are many and long: programs of networks have about three entries a column, those of
// graphs whose operations read many values eight.
constexpr int64_t RootRoundWork(size_t columns, int64_t entries) {
  const auto count = static_cast<int64_t>(columns);
  return count * 30 + std::max<int64_t>(0, entries * 30 - count * 135);
}
constexpr int64_t NodeRoundWork(size_t columns) { return static_cast<int64_t>(columns) * 12; }

// HiGHS looks at its limits between the rounds of its search, at the root as below it, so that it
// exceeds them: by thousands of iterations where a model has thousands of rows. The first linear
// program of an integer program is solved whole, and so is each sub-problem of a heuristic.
struct MipLimits {
  int64_t lp_iterations = std::numeric_limits<int64_t>::max();  // Of the simplex method, in all.
  int64_t work = std::numeric_limits<int64_t>::max();           // Of iterations and rounds.
  int64_t nodes = std::numeric_limits<int64_t>::max();          // Of branch and bound.
  double relative_gap = 0;     // Optimal is also (objective - bound) / |objective| within this,
  double absolute_gap = 1e-6;  // or objective - bound.
};

struct MipOptions {
  // A solution to start from. One that is not feasible is completed or ignored by HiGHS.
  const std::vector<double>* start = nullptr;
  // Solves the linear relaxation: no column need be whole.
  bool relax = false;
  // If set, asked once about each best solution that is within `doubtful_gap` of the bound, with
  // integers that are whole: whether it is worth solving on. Where it is not, the search ends as at
  // a limit.
  std::function<bool(const std::vector<double>&)> is_worth_proving;
  double doubtful_gap = 0;
  // If set, asked about each solution that is better than those before it, with integers that are
  // whole: whether it is all that is to be known. Where it is, the search ends as at a limit.
  std::function<bool(const std::vector<double>&)> is_solution_enough;
  // If set, asked about what no solution costs less than, again and again while that rises: whether
  // it is all that is to be known. Where it is, the search ends as at a limit.
  std::function<bool(double bound)> is_bound_enough;
};

enum class MipStatus {
  kOptimal,     // To within the gaps.
  kInfeasible,  // Proven: nothing satisfies the rows.
  kStopped,     // A limit, or a stop, came before either was proven.
};

struct MipOutcome {
  MipStatus status = MipStatus::kStopped;
  double bound = -kMipInfinity;               // No solution costs less; infinite if none exists.
  std::optional<std::vector<double>> values;  // The best solution found; integers are whole.
  double objective = kMipInfinity;            // Its cost.
  int64_t lp_iterations = 0;                  // As MipLimits counts them.
  int64_t work = 0;                           // The same.
};

// Whether this ckplan is built with a solver.
bool HasMipSolver();

// kUnsupported where there is no solver, or the model exceeds its 32-bit indices; kInvalidInput for
// numbers that it refuses, and for models without a least cost.
Result<MipOutcome> SolveMip(const MipModel& model, const MipLimits& limits,
                            const MipOptions& options = {});

}  // namespace ckplan
