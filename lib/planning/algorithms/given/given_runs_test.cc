#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "lib/files/emit/json_decisions.h"
#include "lib/files/emit/json_joint_graph.h"
#include "lib/files/emit/json_plan.h"
#include "lib/files/input/plan_file.h"
#include "lib/planning/algorithms/given/given.h"
#include "lib/planning/plan/assemble.h"
#include "lib/planning/plan/check.h"
#include "lib/planning/planner/planner.h"
#include "lib/planning/planner/registry.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/random_joint_graph.h"
#include "lib/testing/random_schedule.h"

namespace ckplan {
namespace {

// a → b → c forward; grad_c reads c and b, grad_b reads grad_c and a. The value view shares the
// memory of b.
constexpr std::string_view kGraph = R"({"kind": "joint", "name": "chain",
  "values": [{"id": 10, "name": "a", "bytes": 4, "kind": "value"},
             {"id": 11, "name": "b", "bytes": 2, "kind": "value"},
             {"id": 12, "name": "view", "bytes": 2, "kind": "value", "alias_of": 11},
             {"id": 13, "name": "c", "bytes": 1, "kind": "value"},
             {"id": 14, "name": "d_b", "bytes": 2, "kind": "value"},
             {"id": 15, "name": "d_w", "bytes": 5, "kind": "parameter_gradient"}],
  "ops": [{"id": 0, "name": "make a", "reads": [], "writes": [10], "cost": 1},
          {"id": 1, "name": "make b", "reads": [10], "writes": [11], "cost": 2},
          {"id": 2, "name": "make view", "reads": [11], "writes": [12], "cost": 0},
          {"id": 3, "name": "make c", "reads": [12], "writes": [13], "cost": 3},
          {"id": 4, "name": "grad c", "phase": "backward", "reads": [13, 12], "writes": [14],
           "cost": 4},
          {"id": 5, "name": "grad b", "phase": "backward", "reads": [14, 10], "writes": [15],
           "cost": 5}],
  "results": []})";

JointGraph JointChain() { return ReadJointGraphJson(kGraph, "chain.json").value(); }

Result<std::vector<OpId>> Judge(const JointGraph& graph, const std::string& decisions) {
  const Decisions read = ReadDecisionsJson(decisions, "d.json").value();
  const Result<Schedule> steps = StepsOfDecisions(graph, &read);
  if (!steps.ok()) return steps.error();
  return RunsOf(*steps);
}

// Writes runs as "0 1 2".
std::string Numbers(const std::vector<OpId>& runs) {
  std::string text;
  for (const OpId op : runs) text += (text.empty() ? "" : " ") + std::to_string(op.index());
  return text;
}

RandomJointOptions Options(Rng& rng) {
  RandomJointOptions options;
  options.ops = static_cast<int>(rng.Between(2, 14));
  return options;
}

}  // namespace

TEST_CASE(
    "given runs: kept values stay, with values that share their memory; the rest runs again") {
  const JointGraph graph = JointChain();
  const struct {
    const char* decisions;
    const char* runs;
  } kRows[] = {
      {R"({"kept": ["a", "b", "c"]})", "0 1 2 3 4 5"},
      // The memory of b is named by its view, by the operation that makes b, and by the number of
      // b.
      {R"({"kept": ["a", "view", "c"]})", "0 1 2 3 4 5"},
      {R"({"kept": ["a", "make b", "c"]})", "0 1 2 3 4 5"},
      {R"({"kept": ["a", 11, "c"]})", "0 1 2 3 4 5"},
      {R"({"kept": ["b", "c"]})", "0 1 2 3 4 0 5"},
      {R"({"kept": ["b"]})", "0 1 2 3 3 4 0 5"},
      // b and its view are recomputed from a, which then is in memory for grad b as well.
      {R"({"kept": ["c"]})", "0 1 2 3 0 1 2 4 5"},
      {R"({"kept": []})", "0 1 2 3 0 1 2 3 4 5"},
      {R"({"order": [["r", "make a"], ["r", 1], ["r", "view"], ["r", "c"], ["r", 0], ["r", 4],
                     ["r", "grad b"]]})",
       "0 1 2 3 0 4 5"},
  };
  for (const auto& row : kRows) {
    CAPTURE(std::string(row.decisions));
    const Result<std::vector<OpId>> runs = Judge(graph, row.decisions);
    REQUIRE(runs.ok());
    CHECK(Numbers(*runs) == row.runs);
  }
}

TEST_CASE("given runs: decisions that do not fit the graph are refused, with what and where") {
  const JointGraph graph = JointChain();
  const struct {
    const char* decisions;
    ErrorCode code;
    const char* message;
  } kRows[] = {
      {R"({"kept": ["veiw"]})", ErrorCode::kInvalidInput,
       "decisions: kept: no operation or value is named \"veiw\"; did you mean \"view\"?"},
      {R"({"kept": [99]})", ErrorCode::kInvalidInput,
       "decisions: kept: there is no value with number 99"},
      {R"({"order": [["r", "make a"], ["f", "make b"]]})", ErrorCode::kInvalidInput,
       "decisions: order: step 1 belongs to forward graphs; joint graphs have [\"r\", "
       "operation]"},
      {R"({"order": [["r", "make b"]]})", ErrorCode::kInvalidInput,
       "decisions: schedule: step 0 (run of \"make b\") reads value \"a\", which is not in memory"},
      {R"({"order": [["r", "make a"]]})", ErrorCode::kInvalidInput,
       "decisions: schedule: \"grad b\" must run but does not"},
      {R"({"order": [["r", 17]]})", ErrorCode::kInvalidInput,
       "decisions: order: there is no operation with number 17"},
      {R"({"checkpoints": ["b"]})", ErrorCode::kUsage,
       "decisions: checkpoints are for forward graphs; for a joint graph, give what is "
       "\"kept\", or the \"order\" of its runs"},
      {R"({"mirror_counts": {"b": 1}})", ErrorCode::kUsage,
       "decisions: mirror counts are for forward graphs; for a joint graph, give what is "
       "\"kept\", or the \"order\" of its runs"},
      {R"({"lower_sets": [["b"]]})", ErrorCode::kUsage,
       "decisions: lower sets are for forward graphs; for a joint graph, give what is "
       "\"kept\", or the \"order\" of its runs"},
  };
  for (const auto& row : kRows) {
    CAPTURE(std::string(row.decisions));
    const Result<std::vector<OpId>> runs = Judge(graph, row.decisions);
    REQUIRE_FALSE(runs.ok());
    CHECK(runs.error().code == row.code);
    CHECK(runs.error().message == row.message);
  }
  CHECK(StepsOfDecisions(graph, nullptr).error().code == ErrorCode::kUsage);
  const JointGraph forward =
      ReadJointGraphJson(R"({"ops": [{"name": "a", "time": 1, "bytes": 2, "reads": []}]})",
                         "g.json")
          .value();
  CHECK(Judge(forward, R"({"kept": ["a"]})").error().message ==
        "decisions: kept: no operation has the phase \"backward\", where keeping matters; give the "
        "order of runs instead");
}

TEST_CASE("given runs: any plan of a joint graph, written as decisions, gives the same plan") {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const JointGraph graph = RandomJointGraph(rng, Options(rng));
    const Plan plan = AssembleRuns(graph, RandomRuns(rng, graph));
    PlanRequest request;
    request.algorithm = std::string(kGivenAlgorithm);
    request.decisions = ReadDecisionsJson(WritePlanJson(plan, graph), "plan.json").value();
    const Result<Plan> again = MakePlan(graph, request, {});
    REQUIRE(again.ok());
    CHECK(again->schedule == plan.schedule);
    CHECK(again->figures.peak == plan.figures.peak);
    CHECK(again->figures.overhead == plan.figures.overhead);
    // The checker judges a plan from decisions by making it again.
    const ModelIdentity identity;
    Plan judged = *again;
    CHECK(FindPlanFaults(graph, identity, judged.request, judged).empty());
    if (judged.request.decisions->order.size() < 2) continue;
    judged.request.decisions->order.pop_back();
    CHECK_FALSE(FindPlanFaults(graph, identity, judged.request, judged).empty());
  }
}

TEST_CASE("given runs: a plan with transfers, written as decisions, gives the same plan") {
  const Link link{"pcie4", 2'000'000'000, 3'000'000'000, 1, Duplex::kHalf};
  int with_transfers = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const JointGraph graph = RandomJointGraph(rng, Options(rng));
    const TrainingStep step = TrainingStep(graph).WithLink(&link);
    const Schedule schedule = RandomMoves(rng, graph);
    if (!HasTransfers(schedule) || !Simulator(step).Run(schedule).ok()) continue;
    ++with_transfers;
    Plan plan = AssemblePlan(step, schedule, {}, PlaceTightly);
    plan.request.offload = link;
    PlanRequest request;
    request.algorithm = std::string(kGivenAlgorithm);
    request.offload = link;
    request.decisions = ReadDecisionsJson(WritePlanJson(plan, graph), "plan.json").value();
    const Result<Plan> again = MakePlan(graph, request, {});
    REQUIRE(again.ok());
    CHECK(again->schedule == plan.schedule);
    CHECK(again->figures.overhead == plan.figures.overhead);
    CHECK(again->figures.offload == plan.figures.offload);
    // Written and read, the plan is the same, and the checker still accepts it.
    const std::string text = WritePlanJson(*again, graph);
    CHECK(ReadPlanJson(text, graph, "plan.json").value() == *again);
    CHECK(CheckPlan(graph, *again).empty());
    request.offload.reset();
    CHECK(MakePlan(graph, request, {}).error().remedy.settings.front().name == "offload");
  }
  CHECK(with_transfers > 150);
}

TEST_CASE("given runs: operations with kept values run once, and keeping everything adds nothing") {
  int dropped = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const JointGraph graph = RandomJointGraph(rng, Options(rng));
    Decisions decisions;
    decisions.sets.emplace_back();
    IdVector<ValueId, bool> is_kept(graph.values().size());
    const int percent = static_cast<int>(rng.Between(0, 2)) * 50;
    for (const ValueId id : graph.values().ids()) {
      is_kept[id] = rng.Chance(percent);
      if (is_kept[id]) decisions.sets.front().push_back({"", graph.value(id).file_id});
    }
    const Result<Schedule> steps = StepsOfDecisions(graph, &decisions);
    REQUIRE(steps.ok());
    const std::vector<OpId> runs = RunsOf(*steps);
    if (percent == 100) CHECK(runs == OwnOrder(graph));
    for (const OpId id : graph.ops().ids()) {
      const std::vector<ValueId>& writes = graph.op(id).writes;
      const auto count = std::count(runs.begin(), runs.end(), id);
      CHECK(count >= 1);
      dropped += count > 1 ? 1 : 0;
      const bool keeps_all =
          std::all_of(writes.begin(), writes.end(), [&](ValueId v) { return is_kept[v]; });
      if (keeps_all) CHECK(count == 1);
    }
  }
  CHECK(dropped > 100);
}

TEST_CASE("given runs: a budget is compared with the peak of the decisions") {
  const JointGraph graph = JointChain();
  PlanRequest request;
  request.algorithm = std::string(kGivenAlgorithm);
  request.decisions = ReadDecisionsJson(R"({"kept": ["b", "c"]})", "d.json").value();
  const Plan plan = MakePlan(graph, request, {}).value();
  CHECK(plan.figures.overhead == Cost(1));
  CHECK(plan.figures.guarantee == "none: user-provided decisions");
  request.budget = Budget::Of(plan.figures.peak);
  CHECK(MakePlan(graph, request, {}).ok());
  request.budget = Budget::Of(plan.figures.peak - Bytes(1));
  CHECK(MakePlan(graph, request, {}).error().code == ErrorCode::kInfeasible);
}

}  // namespace ckplan
