// Tests plan.json of joint graphs. json_plan_test.cc tests what both kinds of graphs share.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "lib/base/rng.h"
#include "lib/files/emit/json_plan.h"
#include "lib/files/emit/schemas.h"
#include "lib/planning/plan/assemble.h"
#include "lib/testing/random_joint_graph.h"
#include "lib/testing/schema_validator.h"

namespace ckplan {
namespace {

using nlohmann::json;

Plan RandomJointPlan(Rng& rng, const JointGraph& graph) {
  Plan plan = AssembleRuns(graph, RandomRuns(rng, graph));
  plan.request.algorithm = "keep-all";
  plan.request.objective = Objective::kTime;
  plan.request.cost_model = "graph";
  plan.request.cost_unit = "1";
  if (rng.Chance(50)) plan.request.budget = Budget::Of(plan.figures.peak);
  plan.model = {"g.json", std::string(64, 'a'), {}};
  return plan;
}

}  // namespace

TEST_CASE("joint plan files: read(write(plan)) is the plan, and the schema accepts it") {
  const SchemaValidator judge(FindSchema("plan")->text);
  int dropped = 0, cheaper = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const JointGraph graph = RandomJointGraph(rng);
    const Plan plan = RandomJointPlan(rng, graph);
    const std::string text = WritePlanJson(plan, graph);
    CHECK(judge.Accepts(json::parse(text)));
    const Result<Plan> again = ReadPlanJson(text, graph, "p.json");
    REQUIRE(again.ok());
    CHECK(*again == plan);
    CHECK(WritePlanJson(*again, graph) == text);
    // The digest without the graph has the same rows unless no operation runs.
    const Result<PlanDigest> digest = ReadPlanDigest(text, "p.json");
    REQUIRE((digest.ok() || plan.schedule.steps.empty()));
    if (!digest.ok()) continue;
    CHECK(digest->figures == plan.figures);
    const PlanDigest derived = DigestOf(graph, plan);
    REQUIRE(digest->rows.size() == derived.rows.size());
    for (size_t i = 0; i < derived.rows.size(); ++i) {
      CHECK(digest->rows[i].name == derived.rows[i].name);
      CHECK(digest->rows[i].bytes == derived.rows[i].bytes);
      CHECK(digest->rows[i].at_peak == derived.rows[i].at_peak);
      dropped += derived.rows[i].decision.action == NodeAction::kDrop;
    }
    cheaper += plan.figures.overhead < Cost(0);
  }
  CHECK((dropped > 20 && cheaper > 5));
}

TEST_CASE("joint plan files: steps are runs, by the ids of operations") {
  Rng rng(1);
  const JointGraph graph = RandomJointGraph(rng);
  const Plan plan = RandomJointPlan(rng, graph);
  const json file = json::parse(WritePlanJson(plan, graph));
  const json& steps = file["schedule"]["steps"];
  REQUIRE(steps.size() == plan.schedule.steps.size());
  for (size_t k = 0; k < steps.size(); ++k) {
    CHECK(steps[k] == json::array({"r", graph.op(plan.schedule.steps[k].node()).file_id}));
  }
  for (const json& damaged_step :
       {json::array({"f", steps[0][1]}), json::array({"r"}), json::array({"r", 999}),
        json::array({"r", steps[0][1], 1}), json("r")}) {
    CAPTURE(damaged_step.dump());
    json damaged = file;
    damaged["schedule"]["steps"][0] = damaged_step;
    CHECK_FALSE(ReadPlanJson(damaged.dump(), graph, "p.json").ok());
  }
}

TEST_CASE("joint plan files: rows that are not in the order of the graph do not pass as its rows") {
  Rng rng(1);
  const JointGraph graph = RandomJointGraph(rng);
  REQUIRE(graph.ops().size() > 1);
  json file = json::parse(WritePlanJson(RandomJointPlan(rng, graph), graph));
  std::swap(file["nodes"][0], file["nodes"][1]);
  const Result<Plan> plan = ReadPlanJson(file.dump(), graph, "p.json");
  REQUIRE_FALSE(plan.ok());
  CHECK(plan.error().code == ErrorCode::kCheckFailed);
  CHECK(plan.error().message.starts_with("p.json: /nodes/0 is the row of operation"));
}

TEST_CASE("joint plan files: a plan of a forward graph has no runs, no drops and no savings") {
  const char* const keys[] = {"overhead_cost", "lower_bound_cost"};
  Rng rng(2);
  const JointGraph graph = RandomJointGraph(rng);
  json file = json::parse(WritePlanJson(RandomJointPlan(rng, graph), graph));
  for (const char* const key : keys) file["result"][key] = -1;
  file["nodes"][0]["action"] = "drop";
  CHECK(ReadPlanDigest(file.dump(), "p.json").ok());
  file["schedule"]["steps"][0][0] = "f";
  const Error error = ReadPlanDigest(file.dump(), "p.json").error();
  CHECK(error.message.find("-1 is out of range") != std::string::npos);
  REQUIRE(error.notes.size() == 1);
  CHECK(error.notes.front().find("\"drop\" is unknown") != std::string::npos);
}

}  // namespace ckplan
