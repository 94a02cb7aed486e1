// What an answer says about itself: its guarantee, and what is proven about its time and peak.
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

// Returns the guarantee of a plan whose added time exceeds a bound of this scope by `gap`.
std::string GuaranteeOf(const PlanProblem& problem, BoundScope scope, bool is_optimal, int64_t gap);

// Returns the beginning of the guarantee of a plan that has the least peak of all plans within the
// scope.
std::string MinPeakProven(BoundScope scope, const PlanRequest& request);

// Returns what the refusal of a budget on the peak adds: whether it is proven that no plan fits.
// Sizes include the constants that the budget covers.
std::string ProofText(const PeakBound& bound, const PlanProblem& problem);

// Makes the answer, which is the best for its own peak, that of a search for a balance: it is not
// proven that no product of peak and time is less.
void MarkBalanced(Answer* answer);

// Adds the certificate to the figures, with the gaps between its bounds and these figures.
void AddCertificate(Certificate certificate, PlanFigures* figures);

// Returns what a plan may add that is made for no budget: what the problem allows, or else
// kAddedPercentWithoutBudget (lib/planning/plan/added_time.h) of a step.
Cost AllowedAddition(const PlanProblem& problem);

}  // namespace ckplan
