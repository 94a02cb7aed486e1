#include "lib/planning/planner/guarantees.h"

#include <fmt/format.h>

#include "lib/base/text.h"
#include "lib/planning/plan/added_time.h"
#include "lib/planning/planner/apply_constraints.h"
#include "lib/planning/planner/peak_budget.h"

namespace ckplan {

std::string GuaranteeOf(const PlanProblem& problem, BoundScope scope, bool is_optimal,
                        int64_t gap) {
  const std::string where =
      fmt::format("{}{}", DescriptionOf(scope), ConstraintsSuffix(problem.request));
  if (is_optimal) return fmt::format("optimal among plans {}", where);
  const auto once = static_cast<double>(problem.step.cost().count());
  return fmt::format("heuristic: no plan {} saves more than {:.2f} % of a step", where,
                     once > 0 ? 100 * static_cast<double>(gap) / once : 0);
}

std::string MinPeakGuarantee(BoundScope scope, const PlanRequest& request) {
  return fmt::format("no plan {}{} has a lower peak; ", DescriptionOf(scope),
                     ConstraintsSuffix(request));
}

std::string ProofText(const PeakBound& bound, const PlanProblem& problem) {
  const Bytes needed = bound.bytes + CoveredByBudget(problem.step, problem.request);
  const bool is_proven = bound.bytes > *problem.budget;
  return fmt::format("{} {}{} {} {} ({} bytes)", is_proven ? "no plan" : "a plan",
                     DescriptionOf(bound.scope), ConstraintsSuffix(problem.request),
                     is_proven ? "fits: each needs at least" : "may still fit: the lower bound is",
                     HumanBytes(needed), needed.count());
}

void MarkBalanced(Answer* answer) {
  answer->is_optimal = false;
  answer->guarantee.insert(0, "the lowest product of peak and time found; for its peak: ");
}

void AddCertificate(Certificate certificate, PlanFigures* figures) {
  certificate.gap = figures->overhead - *figures->lower_bound_cost;
  certificate.peak_gap = figures->peak - certificate.peak.bytes;
  figures->certificate = certificate;
}

Cost AllowedAddedTime(const PlanProblem& problem) {
  return problem.most_added.value_or(MostAdded(kAddedPercentWithoutBudget, problem.step.cost()));
}

}  // namespace ckplan
