#include "lib/algorithms/kusumoto/approx_dp.h"

#include <utility>

#include "lib/algorithms/kusumoto/canonical_solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareApproxDp(const Problem& problem,
                                                        const SolveLimits& limits) {
  const VertexGraph rounded = RoundTimes(problem.vertices, DpTimeUnit(problem.vertices));
  CanonicalSolver::Options options;
  options.class_name = "canonical strategies over the closures of single nodes";
  return CanonicalSolver::Prepare(problem, LowerSetFamily::Closures(rounded), std::move(options),
                                  limits);
}

}  // namespace ckplan
