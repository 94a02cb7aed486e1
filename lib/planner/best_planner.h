// Plans by the algorithm `best`: a forward graph is expanded into a joint graph, which
// lib/algorithms/best solves as it does the joint graph of a step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/plan/certificate.h"
#include "lib/plan/curve_point.h"
#include "lib/plan/plan.h"
#include "lib/plan/request.h"
#include "lib/plan/solver.h"
#include "lib/planner/plan_problem.h"
#include "lib/schedule/training_step.h"

namespace ckplan {

// How the guarantee of a plan begins that has the least peak of all plans within the scope.
std::string LeastPeakProven(BoundScope scope, const PlanRequest& request);

// What a refusal adds: whether it is proven that no plan fits the budget, which is one of the peak.
// Sizes include the constants.
std::string WhatIsProven(const PeakBound& bound, const PlanProblem& problem);

// With the gaps to the figures, which are known.
void AddCertificate(Certificate certificate, PlanFigures* figures);

// The plan within the budget, of least peak, or, for no budget, of the least peak that adds at most
// kAddedPercentWithoutBudget (lib/plan/added_time.h). It is no worse than that of any algorithm of
// the registry for the same request, since those are what the search starts from unless it is
// proven that none is better; with quick effort the dynamic programs are left out. If steps of a
// forward graph may come in any order it is no worse than if they may not. Where nothing fits the
// budget, the plan of least peak.
Result<Answer> SolveByBest(const PlanProblem& problem, const SolveLimits& limits);

// Within the budget, which is given: the first plan that this search comes to which adds no more
// than `enough`; where there is none, the best that it finds; nothing if none fits.
Result<std::optional<Answer>> SolveByBestUntil(const PlanProblem& problem, Cost enough,
                                               const SolveLimits& limits);

// The curve that the plan for no budget is chosen from, with more points. Each has a plan; more
// memory costs less time.
Result<std::vector<CurvePoint>> TraceCurveByBest(const PlanProblem& problem,
                                                 const SolveLimits& limits);

// What every plan in the graph's own order adds at least that fits the budget, by one cut, which
// takes milliseconds. Nothing: it is proven that no such plan fits.
std::optional<Cost> OwnOrderBound(const TrainingStep& step, Bytes budget);

}  // namespace ckplan
