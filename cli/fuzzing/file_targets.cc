// The readers of files: settings, costs, decisions, graphs and plans.
#include <string>
#include <utility>

#include "cli/common/config_file.h"
#include "cli/fuzzing/fuzz_targets.h"
#include "cli/fuzzing/testdata_graphs.h"
#include "lib/base/check.h"
#include "lib/files/emit/json_decisions.h"
#include "lib/files/emit/json_graph.h"
#include "lib/files/emit/json_joint_graph.h"
#include "lib/files/emit/json_plan.h"
#include "lib/files/input/load_source.h"
#include "lib/planning/plan/check.h"
#include "lib/planning/planner/planner.h"
#include "lib/planning/planner/registry.h"
#include "lib/planning/planner/source.h"
#include "lib/problem/cost/cost_model.h"
#include "lib/testing/naive_simulation.h"

namespace ckplan {

void FuzzConfig(FuzzInput input) {
  const auto is_section = [](const std::string& name) { return name == "check"; };
  const Result<ConfigFile> file = ParseConfig(TextOf(input), "ckplan.toml", is_section);
  if (!file.ok()) {
    CKPLAN_CHECK(file.error().code == ErrorCode::kUsage, "what is no settings is refused as such");
    CKPLAN_CHECK(file.error().message.starts_with("ckplan.toml:"), "a fault has its line");
    return;
  }
  for (const ConfigEntry& entry : file->entries) {
    CKPLAN_CHECK(entry.section.empty() || entry.section == "check", "only commands have sections");
    CKPLAN_CHECK(entry.where.starts_with("ckplan.toml:"), "a value has its line");
    for (const std::string& text : entry.texts) {
      const Result<ConfigFile> again =
          ParseConfig("key = " + TomlText(text), "ckplan.toml", is_section);
      CKPLAN_CHECK(again.ok(), "what was read can be written");
      CKPLAN_CHECK(again->entries.front().texts.front() == text, "and is read as it was");
    }
  }
}

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

void FuzzCosts(FuzzInput input) {
  const Result<CostTable> workspaces = ParseWorkspaceTable(TextOf(input), "workspaces.json");
  if (workspaces.ok()) {
    for (const auto& [name, row] : *workspaces) {
      CKPLAN_CHECK(row.forward_workspace >= Bytes(0) && row.backward_workspace >= Bytes(0),
                   "workspaces are no less than nothing");
    }
  }
  const Result<CostTable> table = ParseCostTable(TextOf(input), "costs.json");
  if (!table.ok()) return;
  std::vector<std::string> names;
  for (const auto& [name, cost] : *table) {
    names.push_back(name);
    CKPLAN_CHECK(cost.forward >= Cost(1) && cost.backward >= Cost(1), "costs are at least 1");
    CKPLAN_CHECK(cost.forward <= kMaxTotalCost && cost.backward <= kMaxTotalCost,
                 "costs are such that a graph may have them");
    CKPLAN_CHECK(cost.forward_workspace >= Bytes(0) && cost.backward_workspace >= Bytes(0),
                 "workspaces are no less than nothing");
  }
  CKPLAN_CHECK(LookUpCosts(*table, names, "costs.json").ok(), "every name of a table is found");
  names.push_back("a name that the table does not have");
  CKPLAN_CHECK(table->contains(names.back()) || !LookUpCosts(*table, names, "costs.json").ok(),
               "a missing name is refused");
}

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
