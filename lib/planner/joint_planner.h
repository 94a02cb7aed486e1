// From a request to a whole, checked plan of a joint graph: what planner.h does for forward graphs.
//
// An algorithm that decides on runs (registry.h) plans any joint graph. All others decide on the
// nodes of a forward graph; they plan the step of a model, whose forward graph is known, and are
// refused by name on a joint graph that comes without one.
#pragma once

#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/joint/expand.h"
#include "lib/joint/joint_graph.h"
#include "lib/plan/plan.h"
#include "lib/plan/request.h"
#include "lib/plan/solver.h"
#include "lib/planner/best_planner.h"

namespace ckplan {

// Budgets mean what they mean for forward graphs: a percentage is one of the peak of the graph's
// own order, and the total budget covers JointConstants (lib/plan/assemble_joint.h) as well. The
// plan names no model.
//
// `forward`: how the graph looks from the forward graph that it was expanded from; nothing for a
// joint graph of its own.
//
// kUsage: the algorithm needs a forward graph, and there is none; or the request has what is
// defined for such algorithms alone: a paper's budget or objective, a knob's setting, layers; or
// frees without liveness. kInfeasible: the remedy is the least peak that the algorithm reaches.
// kTimeout: stopped before there was a plan.
Result<Plan> MakeJointPlan(const JointGraph& graph, const PlanRequest& request,
                           const SolveLimits& limits,
                           const std::optional<ForwardView>& forward = std::nullopt);

// kInfeasible: `who` finds no plan within the request's budget; `least` is the plan of least peak
// that it has.
Error JointInfeasible(const JointGraph& graph, const PlanRequest& request, std::string_view who,
                      const Plan& least);

// As FindBestPlanWithin (best_planner.h), by `best` for a joint graph. MakeJointPlan adds no more
// time than `plan`.
Result<PlanWithin> FindJointPlanWithin(const JointGraph& graph, const PlanRequest& request,
                                       Cost enough, const SolveLimits& limits,
                                       const std::optional<ForwardView>& forward = std::nullopt);

// As TraceBestCurve (best_planner.h), by `best` for a joint graph.
Result<std::vector<CurvePoint>> TraceJointCurve(
    const JointGraph& graph, const PlanRequest& request, const SolveLimits& limits,
    const std::optional<ForwardView>& forward = std::nullopt);

}  // namespace ckplan
