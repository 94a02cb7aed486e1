// The units in which sizes and costs are passed to the MIP solver, and what the solver's bound
// proves in these units.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/planning/mip/mip.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {

// Stands for the number of a column that does not exist.
inline constexpr int kNoColumn = -1;

struct ProgramUnits {
  ProgramUnits(const RunProblem& problem, int64_t budget);

  // A multiple of the greatest common divisor of all sizes. Sizes are rounded down to it, so that
  // values which fit the budget are never refused.
  int64_t bytes = 1;
  int64_t cost = 1;  // The greatest common divisor of all costs, and of all added times.

  // Makes `cost` divide these times as well.
  void AddTimes(const std::vector<int64_t>& times);

  // Returns the proven lower bound of the cost, for a program with this many columns, all at most
  // 1: the solver's bound less a margin for rounding, rounded up to a whole multiple of the unit.
  int64_t ProvenCost(double bound, size_t columns) const;
  // Returns the cost of a solution in whole numbers.
  int64_t CostOf(double objective) const;
};

// The work of building a program, passing it to the solver and reading the answer, in units of
// MipLimits: a millisecond, and more for large programs. With few operations a program is solved in
// less than that, so this alone bounds a loop over programs.
constexpr int64_t kWorkOfProgram = 8'000;
int64_t ProgramWork(const MipModel& model);

// Returns whether starting a program with this limit of iterations is worthwhile. Its presolve and
// its first linear program always run to their end (lib/planning/mip/mip.h), and the latter takes
// about as many iterations as there are rows. That takes seconds for tens of thousands of rows,
// wasted if the limit is far below, and tenths of a second for small programs.
constexpr bool IsWorthBeginning(size_t rows, int64_t iterations) {
  constexpr size_t kSmall = 5'000;
  return rows <= kSmall || iterations >= static_cast<int64_t>(rows / 16);
}

}  // namespace ckplan
