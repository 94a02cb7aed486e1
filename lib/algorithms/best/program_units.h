// Units in which sizes and costs are handed to the MIP solver, and what its bound proves of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/joint/run_problem.h"
#include "lib/mip/mip.h"

namespace ckplan {

// In place of the number of a column: there is none.
inline constexpr int kNoColumn = -1;

struct ProgramUnits {
  ProgramUnits(const RunProblem& problem, int64_t budget);

  // A multiple of the greatest common divisor of all sizes. Sizes are rounded down to it, so that
  // what fits the budget is never refused.
  int64_t bytes = 1;
  int64_t cost = 1;  // The greatest common divisor of all costs.

  // What a bound of the solver proves about the cost, for a program of so many columns, all at most
  // 1: no more than the bound, up to rounding, and a whole multiple of the unit.
  int64_t ProvenCost(double bound, size_t columns) const;
  // Of a solution of whole numbers.
  int64_t CostOf(double objective) const;
};

// What it takes to build a program, to hand it to the solver and to read the answer, as MipLimits
// counts work: a millisecond, and more for what is large. Where operations are few, a program is
// solved in less, so that a loop over programs is bounded by this alone.
constexpr int64_t kWorkOfProgram = 8'000;
int64_t ProgramWork(const MipModel& model);

// Whether a program is worth beginning with a limit of so many iterations. Its presolve and its
// first linear program are done whole, whatever the limit (lib/mip/mip.h), and the latter takes
// about as many iterations as there are rows: seconds for tens of thousands, with nothing to show
// for them where the limit is far below. Those of small programs take tenths of a second.
constexpr bool IsWorthBeginning(size_t rows, int64_t iterations) {
  constexpr size_t kSmall = 5'000;
  return rows <= kSmall || iterations >= static_cast<int64_t>(rows / 16);
}

}  // namespace ckplan
