// Traces an algorithm's curve of memory against time.
//
// The points are plans of the algorithm on the Pareto front, so more memory always costs less time.
// A point's peak is the smallest budget for its plan, which is also the plan for every budget up to
// the next point.
//
// `best` computes its curve once (lib/planning/algorithms/best/curve), as for a request without a
// budget. Other algorithms prepare once, then solve for each budget. For joint graphs, they start
// over for each budget, and so does `best` with offloading.
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
  Bytes baseline_peak;             // The keep-all peak in the graph's own order.
  Cost step;                       // The cost of a step without recomputation.
  std::vector<CurvePoint> points;  // By increasing peak, and so by decreasing overhead.
  // The host peak of each point's plan; empty without offloading.
  std::vector<Bytes> host_peaks;
  std::vector<Plan> plans;              // Each point's plan; empty without a memory limit.
  std::vector<Accounting> accountings;  // Each plan's needs; see DropPlansAboveMemory.
};

// `request` names the algorithm and has no budget. With a memory limit, each point is MakePlan's
// plan for the point's peak. kUsage: the request has a budget or a knob setting, or the algorithm
// has no curve. kTimeout: a stop was requested; nothing is returned. Otherwise returns the errors
// of MakePlan.
Result<ParetoCurve> TracePareto(const Source& source, const PlanRequest& request,
                                const SolveLimits& limits);

// Removes the points whose plans need more than the request's memory
// (lib/planning/plan/accounting.h), and accounts for the rest. If all need more, keeps one point:
// MakePlan's plan for the memory. kInfeasible: that plan doesn't exist. Otherwise returns the
// errors of MakePlan.
Result<Done> DropPlansAboveMemory(const Source& source, const PlanRequest& request,
                                  const SolveLimits& limits, ParetoCurve* curve);

}  // namespace ckplan
