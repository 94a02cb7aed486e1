// From a request to a whole, checked plan of a joint graph: what planner.h does for forward graphs.
//
// The algorithms that plan joint graphs stand in one table in the source. All others decide on the
// nodes of a forward graph, and are refused by name.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
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
// kUsage: the algorithm plans no joint graphs; or the request has what is defined for forward
// graphs alone: a paper's budget or objective, a knob's setting, layers, or frees
// without liveness. kInfeasible: the remedy is the least peak that the algorithm reaches.
// kTimeout: stopped before there was a plan.
Result<Plan> MakeJointPlan(const JointGraph& graph, const PlanRequest& request,
                           const SolveLimits& limits);

// As FindBestPlanWithin (best_planner.h), by `best` for a joint graph. MakeJointPlan adds no more
// time than `plan`.
Result<PlanWithin> FindJointPlanWithin(const JointGraph& graph, const PlanRequest& request,
                                       Cost enough, const SolveLimits& limits);

// As TraceBestCurve (best_planner.h), by `best` for a joint graph.
Result<std::vector<CurvePoint>> TraceJointCurve(const JointGraph& graph, const PlanRequest& request,
                                                const SolveLimits& limits);

// Whether the algorithm of that name, as the registry has it, plans joint graphs.
bool PlansJointGraphs(std::string_view algorithm);

}  // namespace ckplan
