// Mixed-integer linear programs and their solver HiGHS (docs/dependencies.md), if ckplan is built
// with it.
//
//   minimise  sum of cost[j] * x[j]   where   lower[j] <= x[j] <= upper[j]     for each column j,
//                                             lower[i] <= a[i] . x <= upper[i] for each row i,
//                                             x[j] is whole if column j is an integer
//
//   MipModel model;                                   // maximise 6x + 5y, 4x + 3y <= 6
//   const int x = model.AddColumn({.cost = -6, .upper = 1, .is_integer = true});
//   const int y = model.AddColumn({.cost = -5, .upper = 1, .is_integer = true});
//   model.AddRow(-kMipInfinity, 6, {{x, 4}, {y, 3}});
//   CKPLAN_ASSIGN_OR_RETURN(const MipOutcome outcome, SolveMip(model, {}));
//
// Guarantee  the same model, limits and start give the same outcome, bit by bit, however busy the
//            machine is: one thread, a fixed seed, and limits on work instead of time. Only a stop
//            (lib/base/stop.h) depends on the clock. Another version of HiGHS, or another
//            processor, may find another solution of the same cost.
// Tolerance  HiGHS computes in double precision: rows hold, and bounds are proven, to within
//            kMipTolerance. Code that infers whole numbers from a bound must leave a margin for
//            that.
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

// A row or a column's bound may be violated by at most this: the default of HiGHS.
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
  std::vector<MipEntry> entries;  // Sorted by column, at most one entry for each.
};

// All numbers are finite except bounds. Costs and coefficients are below 1e15 in magnitude, and
// coefficients below 1e-9 count as zero. SolveMip returns kInvalidInput for anything else.
class MipModel {
 public:
  // Columns and rows are numbered from 0 as they are added.
  int AddColumn(const MipColumn& column);
  // Entries may come in any order; entries of the same column add up.
  int AddRow(double lower, double upper, std::vector<MipEntry> entries);

  const std::vector<MipColumn>& columns() const { return columns_; }
  const std::vector<MipRow>& rows() const { return rows_; }

  double Objective(std::span<const double> values) const;
  // Checks every bound, row and integrality condition to within `tolerance`.
  bool IsFeasible(std::span<const double> values, double tolerance = kMipTolerance) const;

 private:
  std::vector<MipColumn> columns_;
  std::vector<MipRow> rows_;
};

// Work per simplex iteration for a program of this many columns. HiGHS does about eight million
// units of work per second.
constexpr int64_t IterationWork(size_t columns) { return static_cast<int64_t>(columns) + 2'000; }
// Work per search round of an integer program, not counting simplex iterations. At the root, a
// round generates many cuts and tries heuristics. Cuts are sums of rows, so many long rows make a
// round several times slower. Programs for neural networks have about three entries per column;
// those for graphs whose operations read many values have eight.
constexpr int64_t RootRoundWork(size_t columns, int64_t entries) {
  const auto count = static_cast<int64_t>(columns);
  return count * 30 + std::max<int64_t>(0, entries * 30 - count * 135);
}
constexpr int64_t NodeRoundWork(size_t columns) { return static_cast<int64_t>(columns) * 12; }

// HiGHS checks its limits only between search rounds, so it can exceed them by thousands of
// iterations if a model has thousands of rows. It always completes the first linear program of an
// integer program and each sub-problem of a heuristic.
struct MipLimits {
  int64_t lp_iterations = std::numeric_limits<int64_t>::max();  // Total simplex iterations.
  int64_t work = std::numeric_limits<int64_t>::max();   // Total work of iterations and rounds.
  int64_t nodes = std::numeric_limits<int64_t>::max();  // Branch-and-bound nodes.
  // A solution counts as optimal if (objective - bound) / |objective| is at most `relative_gap`, or
  // objective - bound is at most `absolute_gap`.
  double relative_gap = 0;
  double absolute_gap = 1e-6;
};

struct MipOptions {
  // A solution to start from. HiGHS completes or ignores an infeasible one.
  const std::vector<double>* start = nullptr;
  // Solves the linear relaxation: no column has to be an integer.
  bool relax = false;
  // Called once for each best solution within `doubtful_gap` of the bound, with integers rounded.
  // If it returns false, the search ends as at a limit.
  std::function<bool(const std::vector<double>&)> is_worth_proving;
  double doubtful_gap = 0;
  // Called for each solution better than those before it, with integers rounded. If it returns
  // true, the search ends as at a limit.
  std::function<bool(const std::vector<double>&)> is_solution_enough;
  // Called whenever the lower bound of the cost rises. If it returns true, the search ends as at a
  // limit.
  std::function<bool(double bound)> is_bound_enough;
};

enum class MipStatus {
  kOptimal,     // Proven to within the gaps.
  kInfeasible,  // Proven to have no solution.
  kStopped,     // A limit or a stop ended the search without a proof.
};

struct MipOutcome {
  MipStatus status = MipStatus::kStopped;
  double bound = -kMipInfinity;  // No solution costs less; infinite if none exists.
  // The best solution found, with integers rounded.
  std::optional<std::vector<double>> values;
  double objective = kMipInfinity;  // The cost of `values`.
  int64_t lp_iterations = 0;        // Counted as in MipLimits.
  int64_t work = 0;                 // Counted as in MipLimits.
};

// Tells whether ckplan was built with a solver.
bool HasMipSolver();

// kUnsupported: ckplan was built without a solver, or the model exceeds the solver's 32-bit
// indices. kInvalidInput: MipModel excludes one of the numbers, or the cost has no minimum.
Result<MipOutcome> SolveMip(const MipModel& model, const MipLimits& limits,
                            const MipOptions& options = {});

}  // namespace ckplan
