#include "lib/planning/algorithms/best/solve_program.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lib/planning/mip/mip.h"

namespace ckplan {

namespace {

// The maximum number of units in a budget: well within double precision, with a unit finer than any
// relevant size.
constexpr int64_t kMaxUnits = int64_t{1} << 31;

int64_t CommonDivisor(const std::vector<int64_t>& numbers) {
  int64_t divisor = 0;
  for (const int64_t number : numbers) divisor = std::gcd(divisor, number);
  return std::max<int64_t>(divisor, 1);
}

}  // namespace

ProgramUnits::ProgramUnits(const RunProblem& problem, int64_t budget)
    : bytes(CommonDivisor(problem.bytes)), cost(CommonDivisor(problem.cost)) {
  while (budget / bytes > kMaxUnits) bytes *= 2;
}

void ProgramUnits::AddTimes(const std::vector<int64_t>& times) {
  for (const int64_t time : times) cost = std::gcd(cost, time);
}

int64_t ProgramUnits::ProvenCost(double bound, size_t columns) const {
  if (!(bound > 0)) return 0;
  // Reduced costs are feasible to within kMipTolerance in each column; the second term covers
  // rounding.
  const double margin = kMipTolerance * static_cast<double>(columns) + 1e-9 * bound;
  return static_cast<int64_t>(std::ceil(bound - margin)) * cost;
}

int64_t ProgramUnits::CostOf(double objective) const {
  return static_cast<int64_t>(std::llround(objective)) * cost;
}

int64_t ProgramWork(const MipModel& model) {
  return kProgramOverheadWork + static_cast<int64_t>(model.columns().size() + model.rows().size());
}

}  // namespace ckplan
