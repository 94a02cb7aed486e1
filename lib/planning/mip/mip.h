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
// Guarantee  the same model, limits and start give the same outcome, bit by bit, whatever else the
//            machine does: one thread, a fixed seed, and limits on work instead of time. Only a
//            stop (lib/base/stop.h) depends on the clock: it ends a solve where it stands. Another
//            version of HiGHS, or another processor, may find another solution of the same cost.
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

// The most by which a row or a column's bound may be violated: the default of HiGHS.
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

// All numbers are finite except bounds; costs and coefficients are below 1e15 in size, and
// coefficients below 1e-9 count as zero. SolveMip returns kInvalidInput for anything else.
class MipModel {
 public:
  // Columns and rows are numbered from 0 in the order in which they are added.
  int AddColumn(const MipColumn& column);
  // Entries may come in any order; entries of the same column add up.
  int AddRow(double lower, double upper, std::vector<MipEntry> entries);

  const std::vector<MipColumn>& columns() const { return columns_; }
  const std::vector<MipRow>& rows() const { return rows_; }

  // Returns the cost of a solution.
  double Objective(std::span<const double> values) const;
  // Returns whether `values` satisfies every bound, row and integrality to within `tolerance`.
  bool IsFeasible(std::span<const double> values, double tolerance = kMipTolerance) const;

 private:
  std::vector<MipColumn> columns_;
  std::vector<MipRow> rows_;
};

// The work of one simplex iteration, for a program with this many columns. Solves do about eight
// million units of work per second.
constexpr int64_t IterationWork(size_t columns) { return static_cast<int64_t>(columns) + 2'000; }
// The work of one round of the search of an integer program, besides its simplex iterations. At the
// root, a round makes many cuts and tries heuristics. Cuts are sums of rows, so a round takes
// several times as long if rows are many and long: programs of neural networks have about three
// entries per column, those of graphs whose operations read many values have eight.
constexpr int64_t RootRoundWork(size_t columns, int64_t entries) {
  const auto count = static_cast<int64_t>(columns);
  return count * 30 + std::max<int64_t>(0, entries * 30 - count * 135);
}
constexpr int64_t NodeRoundWork(size_t columns) { return static_cast<int64_t>(columns) * 12; }

// HiGHS checks its limits only between rounds of its search, at the root and below, so it exceeds
// them: by thousands of iterations if a model has thousands of rows. The first linear program of an
// integer program is always solved to its end, and so is each sub-problem of a heuristic.
struct MipLimits {
  int64_t lp_iterations = std::numeric_limits<int64_t>::max();  // Simplex iterations in total.
  int64_t work = std::numeric_limits<int64_t>::max();           // Work of iterations and rounds.
  int64_t nodes = std::numeric_limits<int64_t>::max();          // Nodes of branch and bound.
  // A solution counts as optimal if (objective - bound) / |objective| is at most `relative_gap`, or
  // objective - bound is at most `absolute_gap`.
  double relative_gap = 0;
  double absolute_gap = 1e-6;
};

struct MipOptions {
  // A solution to start from. HiGHS completes or ignores an infeasible one.
  const std::vector<double>* start = nullptr;
  // Solves the linear relaxation, in which no column need be whole.
  bool relax = false;
  // If set, called once for each best solution that is within `doubtful_gap` of the bound, with
  // whole values for integers. It returns whether the search should go on; if not, the search ends
  // as at a limit.
  std::function<bool(const std::vector<double>&)> is_worth_proving;
  double doubtful_gap = 0;
  // If set, called for each solution that is better than those before it, with whole values for
  // integers. It returns whether this solution is good enough; if so, the search ends as at a
  // limit.
  std::function<bool(const std::vector<double>&)> is_solution_enough;
  // If set, called with the lower bound of the cost whenever that rises. It returns whether this
  // bound is good enough; if so, the search ends as at a limit.
  std::function<bool(double bound)> is_bound_enough;
};

enum class MipStatus {
  kOptimal,     // Proven to within the gaps.
  kInfeasible,  // Proven: no values satisfy the rows.
  kStopped,     // A limit or a stop ended the search before either proof.
};

struct MipOutcome {
  MipStatus status = MipStatus::kStopped;
  double bound = -kMipInfinity;  // No solution costs less; infinite if there is no solution.
  // The best solution found; integers have whole values.
  std::optional<std::vector<double>> values;
  double objective = kMipInfinity;  // The cost of `values`.
  int64_t lp_iterations = 0;        // As MipLimits counts them.
  int64_t work = 0;                 // As MipLimits counts it.
};

// Returns whether this ckplan is built with a solver.
bool HasMipSolver();

// kUnsupported: there is no solver, or the model exceeds the solver's 32-bit indices.
// kInvalidInput: a number that MipModel excludes, or a model whose cost has no minimum.
Result<MipOutcome> SolveMip(const MipModel& model, const MipLimits& limits,
                            const MipOptions& options = {});

}  // namespace ckplan
