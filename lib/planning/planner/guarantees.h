// What a plan guarantees, and what is proven about its time and peak.
#pragma once

#include <cstdint>
#include <string>

#include "lib/base/units.h"
#include "lib/planning/plan/certificate.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/plan_problem.h"

namespace ckplan {

// The guarantee of a plan whose added time exceeds a bound of this scope by `gap`.
std::string GuaranteeOf(const PlanProblem& problem, BoundScope scope, bool is_optimal, int64_t gap);

// The beginning of the guarantee of a plan whose peak is proven minimal within the scope.
std::string MinPeakGuarantee(BoundScope scope, const PlanRequest& request);

// Tells whether an infeasible budget on the peak is proven infeasible. Sizes include the constants
// that the budget covers.
std::string ProofText(const PeakBound& bound, const PlanProblem& problem);

// Turns the guarantee of the best plan for its own peak into that of a balanced plan. No proof
// shows that the product of peak and time is minimal.
void MarkBalanced(Answer* answer);

// Adds the certificate and its gaps to the figures.
void AddCertificate(Certificate certificate, PlanFigures* figures);

// Returns the most that a plan without a budget may add: the problem's limit, or else
// kAddedPercentWithoutBudget (lib/planning/plan/added_time.h) of a step.
Cost AllowedAddedTime(const PlanProblem& problem);

}  // namespace ckplan
