#include "lib/planner/source_views.h"

#include "lib/emit/json_plan.h"

namespace ckplan {

std::unique_ptr<PlannedGraph> PlannedGraphOf(const Source& source) {
  return source.joint ? PlannedGraphOf(*source.joint)
                      : PlannedGraphOf(source.graph, &source.modules);
}

std::string PlanJsonOf(const Source& source, const Plan& plan) {
  return source.joint ? WritePlanJson(plan, *source.joint) : WritePlanJson(plan, source.graph);
}

PlanDigest DigestOf(const Source& source, const Plan& plan) {
  return source.joint ? DigestOf(*source.joint, plan) : DigestOf(source.graph, plan);
}

}  // namespace ckplan
