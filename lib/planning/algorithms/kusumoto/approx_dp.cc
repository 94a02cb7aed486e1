#include "lib/planning/algorithms/kusumoto/approx_dp.h"

#include <fmt/format.h>

#include <utility>

#include "lib/planning/algorithms/kusumoto/canonical_solver.h"

namespace ckplan {
namespace {

// This takes a tenth of a second; a proof for so small a class is not worth more.
constexpr int64_t kMaxRefinementSteps = 1'000'000;

}  // namespace

Result<std::unique_ptr<PreparedSolver>> PrepareApproxDp(const Problem& problem,
                                                        const SolveLimits& limits) {
  CKPLAN_ASSIGN_OR_RETURN(LowerSetFamily closures,
                          LowerSetFamily::Closures(problem.vertices, kMaxClosures, {limits.stop}));
  CanonicalSolver::Options options;
  options.class_name =
      closures.stride() == 1
          ? "canonical strategies over the closures of single nodes"
          : fmt::format("canonical strategies over the closures of one node in every {}",
                        closures.stride());
  options.state_limits.max_steps = kMaxRefinementSteps;
  return CanonicalSolver::Prepare(problem, std::move(closures), std::move(options), limits);
}

}  // namespace ckplan
