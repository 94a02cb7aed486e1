#include "lib/planning/algorithms/kusumoto/exact_dp.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/planning/algorithms/kusumoto/canonical_solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareExactDp(const Problem& problem,
                                                       const SolveLimits& limits) {
  const VertexGraph& vertices = problem.vertices;
  const auto bytes_per_set = static_cast<int64_t>((vertices.size() + 63) / 64 * 8);
  const int64_t max_sets =
      std::min(kMaxLowerSets, kMaxLowerSetBytes / std::max<int64_t>(1, bytes_per_set));
  auto family = LowerSetFamily::All(vertices, max_sets, {limits.stop});
  if (!family.ok() && family.error().code == ErrorCode::kTimeout) return std::move(family).error();
  if (!family.ok()) {
    Error error = std::move(family).error();
    error.message = fmt::format("exact-dp: {}, the most that it takes on", error.message);
    error.remedy = {"use", {{"algorithm", "approx-dp"}}};
    return error;
  }
  CanonicalSolver::Options options;
  options.class_name = "canonical strategies over all lower sets";
  options.is_exact = true;
  options.max_transitions = kMaxTransitions;
  // Closures are lower sets, so their least budget is an upper bound of the least one here.
  CKPLAN_ASSIGN_OR_RETURN(const LowerSetFamily closures,
                          LowerSetFamily::Closures(vertices, kMaxClosures, {limits.stop}));
  CKPLAN_ASSIGN_OR_RETURN(options.known_budget, LowerSetDp(closures).MinBudget({}, {limits.stop}));
  return CanonicalSolver::Prepare(problem, std::move(*family), std::move(options), limits);
}

}  // namespace ckplan
