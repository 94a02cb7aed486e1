// Plans by the algorithm `best` for forward graphs: the graph is expanded into a joint graph, which
// lib/algorithms/best solves; what it returns becomes a plan like any other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/graph/tensor_graph.h"
#include "lib/joint/joint_graph.h"
#include "lib/plan/certificate.h"
#include "lib/plan/plan.h"
#include "lib/plan/request.h"
#include "lib/plan/solver.h"

namespace ckplan {

// How the guarantee of a plan begins that has the least peak of all plans within the scope.
std::string LeastPeakProven(BoundScope scope, const PlanRequest& request);

// What a refusal adds: whether it is proven that no plan fits the budget, which is one of the peak.
// Sizes include the constants.
std::string WhatIsProven(const PeakBound& bound, Bytes budget, Bytes constants,
                         const PlanRequest& request);

// With the gaps to the figures, which are known.
void AddCertificate(Certificate certificate, PlanFigures* figures);

// The request has passed the planner's checks. The plan is no worse than that of any algorithm of
// the registry for the same request, since those are what it starts from unless it is proven that
// none is better; with quick effort the dynamic programs are left out. Errors are those of
// MakePlan. If steps may come in any order it is no worse than if they may not.
Result<Plan> MakeBestPlan(const TensorGraph& graph, const PlanRequest& request,
                          const SolveLimits& limits);

struct PlanWithin {
  std::optional<Plan> plan;         // Adds no more time than is enough.
  std::optional<Cost> least_found;  // What the best plan adds that was found, enough or not.
};

// Whether there is a plan within the request's budget on the peak, in bytes, that adds no more time
// than `enough`: the first that the search of MakeBestPlan comes to. The search ends there, or once
// it is proven that there is none, and so takes a part of the time. MakeBestPlan adds no more time
// than `plan`, and where there is none, it finds none either; both but for other algorithms' plans
// in other orders, which are looked for where the search stands.
Result<PlanWithin> FindBestPlanWithin(const TensorGraph& graph, const PlanRequest& request,
                                      Cost enough, const SolveLimits& limits);

// The curve that the plan for no budget is chosen from, with more points (BestSearch::TraceCurve).
// The request has no budget.
Result<std::vector<CurvePoint>> TraceBestCurve(const TensorGraph& graph, const PlanRequest& request,
                                               const SolveLimits& limits);

// What every plan in the graph's own order adds at least that fits the budget, by one cut, which
// takes milliseconds. Nothing: it is proven that no such plan fits.
std::optional<Cost> OwnOrderBound(const TensorGraph& graph, Bytes budget);
std::optional<Cost> OwnOrderBound(const JointGraph& graph, Bytes budget);

}  // namespace ckplan
