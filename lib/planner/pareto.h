// The curve of memory against time of one algorithm: what each budget costs.
//
// Its points are the breakpoints: plans that an algorithm finds, none of which another one of them
// equals or betters, so that more memory always costs less time. A point's peak is the least budget
// that has its plan, and its plan serves every budget up to the next point.
//
// `best` looks for the least peak within a few added times, as it does for a request without a
// budget, and for the least time within a dozen budgets, from what it has found before. The knobs
// of other algorithms are turned for so many budgets after one preparation; for joint graphs they
// plan anew for each.
#pragma once

#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/plan/plan.h"
#include "lib/plan/request.h"
#include "lib/plan/solver.h"
#include "lib/planner/source.h"

namespace ckplan {

struct ParetoCurve {
  std::string algorithm;
  Bytes baseline_peak;             // Of keeping everything, in the graph's own order.
  Cost step;                       // Without recomputation.
  std::vector<CurvePoint> points;  // By increasing peak; what is added falls.
};

// `request` names the algorithm and has no budget. kUsage: it has one, or a knob's setting, or the
// algorithm is none that has a curve. kTimeout: stopped, whatever was found by then. Other errors
// are those of MakePlan.
Result<ParetoCurve> TracePareto(const Source& source, const PlanRequest& request,
                                const SolveLimits& limits);

}  // namespace ckplan
