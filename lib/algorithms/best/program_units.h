// Units in which sizes and costs are handed to the MIP solver, and what its bound proves of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/joint/run_problem.h"

namespace ckplan {

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

}  // namespace ckplan
