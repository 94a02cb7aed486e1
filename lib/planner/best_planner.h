// Plans by the algorithm `best` for forward graphs: the graph is expanded into a joint graph, which
// lib/algorithms/best solves; what it returns becomes a plan like any other.
#pragma once

#include <string>

#include "lib/algorithms/best/best.h"
#include "lib/base/result.h"
#include "lib/graph/tensor_graph.h"
#include "lib/plan/certificate.h"
#include "lib/plan/plan.h"
#include "lib/plan/request.h"
#include "lib/plan/solver.h"

namespace ckplan {

// How the guarantee of a plan begins that has the least peak of all plans within the scope.
std::string LeastPeakProven(BoundScope scope);

// What a refusal adds: whether it is proven that no plan fits the budget, which is one of the peak.
// Sizes are told with the constants.
std::string WhatIsProven(const PeakBound& bound, Bytes budget, Bytes constants);

// With the gaps to the figures, which are known.
void AddCertificate(Certificate certificate, PlanFigures* figures);

// What a search by `best` may do.
BestWork WorkOf(SearchEffort effort);

// The request has passed the planner's checks. The plan is no worse than that of any algorithm of
// the registry for the same request, since those are what it starts from unless it is proven that
// none is better; with quick effort the dynamic programs are left out. Errors are those of
// MakePlan. If steps may come in any order it is no worse than if they may not.
Result<Plan> MakeBestPlan(const TensorGraph& graph, const PlanRequest& request,
                          const SolveLimits& limits);

}  // namespace ckplan
