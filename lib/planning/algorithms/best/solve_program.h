// Solves the programs over moments (moment_program.h, any_order.h) with the MIP solver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "lib/base/result.h"
#include "lib/planning/mip/mip.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {

// The units of sizes and costs in the MIP solver, and what its bound proves in these units.

// Stands for a column that does not exist.
inline constexpr int kNoColumn = -1;

struct ProgramUnits {
  ProgramUnits(const RunProblem& problem, int64_t budget);

  // A multiple of the greatest common divisor of all sizes. Sizes are rounded down to it, so that
  // values that fit the budget always fit the program.
  int64_t bytes = 1;
  int64_t cost = 1;  // The greatest common divisor of all costs, and of all added times.

  // Makes `cost` a divisor of these times as well.
  void AddTimes(const std::vector<int64_t>& times);

  // Returns the proven lower bound on the cost of a program with this many columns, all at most 1:
  // the solver's bound less a margin for rounding, rounded up to a multiple of the unit.
  int64_t ProvenCost(double bound, size_t columns) const;
  // Returns the cost of a solution as an integer.
  int64_t CostOf(double objective) const;
};

// The work of building a program, passing it to the solver and reading the answer, in units of
// MipLimits: a millisecond, and more for large programs. Solving a program with few operations
// takes less than that, so this alone bounds a loop over programs.
constexpr int64_t kProgramOverheadWork = 8'000;
int64_t ProgramWork(const MipModel& model);

// Tells whether starting a program with this limit of iterations is worthwhile. Its presolve and
// its first linear program always run to their end (lib/planning/mip/mip.h), and the latter takes
// about one iteration per row. That takes tenths of a second for small programs and seconds for
// tens of thousands of rows, wasted if the limit is far below.
constexpr bool IsWorthStarting(size_t rows, int64_t iterations) {
  constexpr size_t kSmall = 5'000;
  return rows <= kSmall || iterations >= static_cast<int64_t>(rows / 16);
}

// `Plan` is the type that Program::Read turns a solution into. "Every plan" means every plan of
// which the program is a relaxation.
template <typename Plan>
struct ProgramOutcome {
  bool is_infeasible = false;  // Proven: no plan fits the budget.
  int64_t lower_bound = 0;     // A lower bound on every plan's overhead.
  bool is_exact = false;       // `plan` has the minimum cost.
  std::optional<Plan> plan;    // The best plan found.
  int64_t plan_cost = 0;       // The overhead of `plan`, by the program.
  int64_t work = 0;            // The work done, as MipLimits counts it.
};

// Conditions for ending the search early with the best solution and bound so far.
template <typename Plan>
struct ProgramLimits {
  int64_t work = 0;  // As MipLimits counts it.
  // Called for a plan that costs at most `doubtful_gap` more than the bound; tells whether proving
  // it is worthwhile.
  std::function<bool(const Plan&)> is_worth_proving = nullptr;
  int64_t doubtful_gap = 0;
  // Called for each better plan; the search ends if it returns true.
  std::function<bool(const Plan&)> is_plan_enough = nullptr;
  // The search ends once every plan is proven to add more than this.
  std::optional<int64_t> enough = std::nullopt;
  // Solves only the linear relaxation, which gives a bound but no plan. Then `work` does not limit
  // the iterations, about one per row.
  bool is_relaxed = false;
};

// `Program` has
//   model()         the program, with sizes and costs in
//   units(),
//   is_hopeless()   whether building it already showed that it has no solution,
//   BeyondOne(cost) how much columns may exceed 1 together in a solution of this cost, and
//   Read(values)    the plan of a solution.
// kUnsupported: built without a MIP solver, or too large for it.
template <typename Plan, typename Program>
Result<ProgramOutcome<Plan>> SolveProgram(const Program& program,
                                          const ProgramLimits<Plan>& limits) {
  ProgramOutcome<Plan> outcome;
  outcome.work = ProgramWork(program.model());
  outcome.is_infeasible = program.is_hopeless();
  if (outcome.is_infeasible) return outcome;
  const size_t columns = program.model().columns().size();
  const auto proven = [&](double bound) {
    return program.units().ProvenCost(bound, columns + program.BeyondOne(bound));
  };
  MipLimits mip;
  mip.work = limits.work;
  MipOptions options;
  options.relax = limits.is_relaxed;
  if (limits.is_worth_proving) {
    options.is_worth_proving = [&](const std::vector<double>& values) {
      return limits.is_worth_proving(program.Read(values));
    };
    options.doubtful_gap = static_cast<double>(limits.doubtful_gap / program.units().cost);
  }
  if (limits.is_plan_enough) {
    options.is_solution_enough = [&](const std::vector<double>& values) {
      return limits.is_plan_enough(program.Read(values));
    };
  }
  if (limits.enough) {
    options.is_bound_enough = [&](double bound) { return proven(bound) > *limits.enough; };
  }
  const int64_t iterations = limits.work / IterationWork(columns);
  if (!IsWorthStarting(program.model().rows().size(), iterations)) return outcome;
  CKPLAN_ASSIGN_OR_RETURN(const MipOutcome solved, SolveMip(program.model(), mip, options));
  outcome.work += solved.work;
  outcome.is_infeasible = solved.status == MipStatus::kInfeasible;
  if (outcome.is_infeasible) return outcome;
  outcome.lower_bound = proven(solved.bound);
  if (!solved.values || limits.is_relaxed) return outcome;
  outcome.plan = program.Read(*solved.values);
  outcome.plan_cost = program.units().CostOf(solved.objective);
  outcome.is_exact = outcome.plan_cost <= outcome.lower_bound;
  return outcome;
}

}  // namespace ckplan
