#include <string>

#include "cli/fuzzing/fuzz_targets.h"
#include "cli/fuzzing/plan_targets.h"
#include "cli/fuzzing/testdata_graphs.h"
#include "lib/base/check.h"
#include "lib/files/emit/json_plan.h"
#include "lib/files/input/load_source.h"
#include "lib/planning/plan/check.h"
#include "lib/planning/planner/source.h"
#include "lib/testing/naive_simulation.h"

namespace ckplan {
namespace {

// A plan that the checker has accepted must also pass the plainest check.
void CheckAgain(const TensorGraph& graph, const Plan& plan) {
  NaiveSimulation naive(graph, plan.schedule);
  CKPLAN_CHECK(naive.Peak() == plan.figures.peak, "an accepted plan states its peak");
  CKPLAN_CHECK(naive.Overhead() == plan.figures.overhead, "an accepted plan states its overhead");
  for (const std::string& fault : NaiveArenaFaults(graph, plan.schedule, plan.offsets)) {
    CKPLAN_CHECK(fault.empty(), fault);
  }
  const std::string text = WritePlanJson(plan, graph);
  const Result<Plan> again = ReadPlanJson(text, graph, "written.json");
  CKPLAN_CHECK(again.ok(), "a plan that was written can be read");
  CKPLAN_CHECK(*again == plan, "a plan that is written and read is the same plan");
}

}  // namespace

bool IsAcceptedPlan(std::string_view text) {
  const Result<Plan> plan = ReadPlanJson(text, NetGraph(), "plan.json");
  return plan.ok() && CheckPlan(NetGraph(), *plan).empty();
}

void FuzzPlan(FuzzInput input) {
  const std::string_view text = TextOf(input);
  const Result<PlanHeader> header = ReadPlanHeader(text, "plan.json");
  if (header.ok()) static_cast<void>(RequestToReadAgain(header->request, {}).ok());
  static_cast<void>(ReadPlanDigest(text, "plan.json").ok());
  const Result<Plan> plan = ReadPlanJson(text, NetGraph(), "plan.json");
  if (!plan.ok() || !CheckPlan(NetGraph(), *plan).empty()) return;
  CheckAgain(NetGraph(), *plan);
}

}  // namespace ckplan
