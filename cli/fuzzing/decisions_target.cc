#include <string>
#include <utility>

#include "cli/fuzzing/fuzz_targets.h"
#include "cli/fuzzing/testdata_graphs.h"
#include "lib/base/check.h"
#include "lib/files/emit/json_decisions.h"
#include "lib/files/emit/json_plan.h"
#include "lib/planning/planner/planner.h"
#include "lib/planning/planner/registry.h"

namespace ckplan {
namespace {

// Checks the plan that `make_plan` makes from the decisions, if they are valid for the graph.
template <typename Graph, typename MakePlanOf>
void CheckPlanOf(const Graph& graph, Decisions decisions, MakePlanOf make_plan) {
  PlanRequest request;
  request.algorithm = std::string(kGivenAlgorithm);
  request.uses_liveness = !decisions.has_frees();
  request.decisions = std::move(decisions);
  const Result<Plan> plan = make_plan(graph, request);
  if (!plan.ok()) {
    const ErrorCode code = plan.error().code;
    CKPLAN_CHECK(code == ErrorCode::kInvalidInput || code == ErrorCode::kUsage,
                 plan.error().message);
    return;
  }
  const std::string text = WritePlanJson(*plan, graph);
  const Result<Plan> read = ReadPlanJson(text, graph, "plan.json");
  CKPLAN_CHECK(read.ok() && *read == *plan, "a plan of decisions is written and read");
  request.decisions = ReadDecisionsJson(text, "plan.json").value();
  const Result<Plan> again = make_plan(graph, request);
  CKPLAN_CHECK(again.ok() && again->schedule == plan->schedule, "its steps are decisions as well");
}

}  // namespace

void FuzzDecisions(FuzzInput input) {
  const Result<Decisions> decisions = ReadDecisionsJson(TextOf(input), "decisions.json");
  if (!decisions.ok()) return;
  CheckPlanOf(NetGraph(), *decisions, [](const TensorGraph& graph, const PlanRequest& request) {
    return MakePlan(graph, request, {});
  });
  CheckPlanOf(JointNetGraph(), *decisions, [](const JointGraph& graph, const PlanRequest& request) {
    return MakePlan(graph, request, {});
  });
}

}  // namespace ckplan
