// Traces the curve of memory against time of one algorithm: what each budget costs.
//
// The points of the curve are plans that the algorithm finds. No plan equals or betters another in
// both memory and time, so more memory always costs less time. A point's peak is the least budget
// with this plan, and the plan serves every budget up to the next point.
//
// `best` computes its curve once (lib/planning/algorithms/best/curve), as it does for a request
// without a budget. Other algorithms prepare once and are then asked for as many budgets; for joint
// graphs, they plan anew for each budget, and so does `best` if values may move to the host.
#pragma once

#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/source.h"

namespace ckplan {

struct ParetoCurve {
  std::string algorithm;
  Bytes baseline_peak;             // The peak of keeping everything, in the graph's own order.
  Cost step;                       // The cost of a step without recomputation.
  std::vector<CurvePoint> points;  // By increasing peak, and so by decreasing overhead.
  // The peak of each point's plan on the host; empty if values may not move there.
  std::vector<Bytes> host_peaks;
  std::vector<Plan> plans;              // The plan of each point; only with a memory.
  std::vector<Accounting> accountings;  // What it needs: see DropPlansAboveMemory.
};

// `request` names the algorithm and has no budget. With a memory, each point is the plan that
// MakePlan makes for its peak. kUsage: the request has a budget or a knob's setting, or the
// algorithm has no curve. kTimeout: stopped; nothing is returned of what was found by then. Other
// errors are those of MakePlan.
Result<ParetoCurve> TracePareto(const Source& source, const PlanRequest& request,
                                const SolveLimits& limits);

// Removes the points whose plans need more than the request's memory
// (lib/planning/plan/accounting.h), and accounts for the others. If all need more, the only point
// is the plan that MakePlan makes for the memory. kInfeasible: it makes none. Other errors are
// those of MakePlan.
Result<Done> DropPlansAboveMemory(const Source& source, const PlanRequest& request,
                                  const SolveLimits& limits, ParetoCurve* curve);

}  // namespace ckplan
