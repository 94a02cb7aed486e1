#include "cli/fuzzing/fuzz_targets.h"
#include "cli/fuzzing/plan_targets.h"
#include "lib/base/check.h"
#include "lib/files/emit/json_graph.h"
#include "lib/files/emit/json_joint_graph.h"
#include "lib/planning/planner/planner.h"

namespace ckplan {
namespace {

constexpr size_t kMaxPlannedGraphNodes = 200;

}  // namespace

void FuzzGraph(FuzzInput input) {
  const Result<AnyGraph> any = ReadAnyGraphJson(TextOf(input), "graph.json");
  if (!any.ok()) return;
  if (const auto* joint = std::get_if<JointGraph>(&*any)) return CheckJointGraph(*joint);
  const auto* const graph = std::get_if<TensorGraph>(&*any);
  const Result<TensorGraph> again = ReadGraphJson(WriteGraphJson(*graph), "written.json");
  CKPLAN_CHECK(again.ok(), "what was written can be read: " +
                               (again.ok() ? std::string() : again.error().message));
  CKPLAN_CHECK(*again == *graph, "a graph that is written and read is the same graph");
  if (graph->nodes().size() > kMaxPlannedGraphNodes) return;
  PlanRequest request;
  request.algorithm = "chen-sqrt";
  const Result<Plan> plan = MakePlan(*graph, request, {});
  if (!plan.ok()) {
    CKPLAN_CHECK(plan.error().code == ErrorCode::kUnsupported, plan.error().message);
    return;
  }
  CKPLAN_CHECK(plan->figures.peak <= plan->figures.arena, "the arena holds the peak");
}

}  // namespace ckplan
