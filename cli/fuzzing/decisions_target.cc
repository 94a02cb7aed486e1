#include <string>

#include "cli/fuzzing/fuzz_targets.h"
#include "lib/base/check.h"
#include "lib/base/read_file.h"
#include "lib/emit/json_decisions.h"
#include "lib/emit/json_graph.h"
#include "lib/emit/json_plan.h"
#include "lib/planner/plan_file.h"
#include "lib/planner/planner.h"
#include "lib/planner/registry.h"

namespace ckplan {
namespace {

const TensorGraph& DecidedGraph() {
  static const TensorGraph graph = [] {
    const std::string path = CKPLAN_PROJECT_DIR "/testdata/graphs/net.json";
    return ReadGraphJson(ReadWholeFile(path).value(), path).value();
  }();
  return graph;
}

}  // namespace

void FuzzDecisions(FuzzInput input) {
  Result<Decisions> decisions = ReadDecisionsJson(TextOf(input), "decisions.json");
  if (!decisions.ok()) return;
  PlanRequest request;
  request.algorithm = std::string(kGivenAlgorithm);
  request.uses_liveness = !decisions->has_frees();
  request.decisions = std::move(decisions).value();
  const Result<Plan> plan = MakePlan(DecidedGraph(), request, {});
  if (!plan.ok()) {
    CKPLAN_CHECK(plan.error().code == ErrorCode::kInvalidInput, plan.error().message);
    return;
  }
  const std::string text = WritePlanJson(*plan, DecidedGraph());
  const Result<Plan> read = ReadPlanJson(text, DecidedGraph(), "plan.json");
  CKPLAN_CHECK(read.ok() && *read == *plan, "a plan of decisions is written and read");
  request.decisions = ReadDecisionsJson(text, "plan.json").value();
  const Result<Plan> again = MakePlan(DecidedGraph(), request, {});
  CKPLAN_CHECK(again.ok() && again->schedule == plan->schedule, "its steps are decisions as well");
}

}  // namespace ckplan
