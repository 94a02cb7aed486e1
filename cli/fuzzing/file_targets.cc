// File readers: settings, costs, decisions, graphs and plans.
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
    CKPLAN_CHECK(file.error().code == ErrorCode::kUsage, "invalid settings are a usage error");
    CKPLAN_CHECK(file.error().message.starts_with("ckplan.toml:"), "an error names its line");
    return;
  }
  for (const ConfigEntry& entry : file->entries) {
    CKPLAN_CHECK(entry.section.empty() || entry.section == "check", "only commands have sections");
    CKPLAN_CHECK(entry.where.starts_with("ckplan.toml:"), "a value knows its line");
    for (const std::string& text : entry.texts) {
      const Result<ConfigFile> again =
          ParseConfig("key = " + TomlText(text), "ckplan.toml", is_section);
      CKPLAN_CHECK(again.ok(), "settings can be written back");
      CKPLAN_CHECK(again->entries.front().texts.front() == text,
                   "settings survive writing and reading");
    }
  }
}

namespace {

// A plan that the checker accepted must also pass the naive replay.
void CheckByReplay(const TensorGraph& graph, const Plan& plan) {
  NaiveSimulation naive(graph, plan.schedule);
  CKPLAN_CHECK(naive.Peak() == plan.figures.peak, "an accepted plan states its true peak");
  CKPLAN_CHECK(naive.Overhead() == plan.figures.overhead,
               "an accepted plan states its true overhead");
  for (const std::string& fault : NaiveArenaFaults(graph, plan.schedule, plan.offsets)) {
    CKPLAN_CHECK(fault.empty(), fault);
  }
  const std::string text = WritePlanJson(plan, graph);
  const Result<Plan> again = ReadPlanJson(text, graph, "written.json");
  CKPLAN_CHECK(again.ok(), "a written plan can be read");
  CKPLAN_CHECK(*again == plan, "writing and reading a plan preserves it");
}

}  // namespace

bool IsAcceptedPlan(std::string_view text) {
  const Result<Plan> plan = ReadPlanJson(text, NetGraph(), "plan.json");
  return plan.ok() && CheckPlan(NetGraph(), *plan).empty();
}

void FuzzPlan(FuzzInput input) {
  const std::string_view text = TextOf(input);
  const Result<PlanHeader> header = ReadPlanHeader(text, "plan.json");
  if (header.ok()) static_cast<void>(RequestForReread(header->request, {}).ok());
  static_cast<void>(ReadPlanDigest(text, "plan.json").ok());
  const Result<Plan> plan = ReadPlanJson(text, NetGraph(), "plan.json");
  if (!plan.ok() || !CheckPlan(NetGraph(), *plan).empty()) return;
  CheckByReplay(NetGraph(), *plan);
}

void FuzzCosts(FuzzInput input) {
  const Result<CostTable> workspaces = ParseWorkspaceTable(TextOf(input), "workspaces.json");
  if (workspaces.ok()) {
    for (const auto& [name, row] : *workspaces) {
      CKPLAN_CHECK(row.forward_workspace >= Bytes(0) && row.backward_workspace >= Bytes(0),
                   "workspace sizes are not negative");
    }
  }
  const Result<CostTable> table = ParseCostTable(TextOf(input), "costs.json");
  if (!table.ok()) return;
  std::vector<std::string> names;
  for (const auto& [name, cost] : *table) {
    names.push_back(name);
    CKPLAN_CHECK(cost.forward >= Cost(1) && cost.backward >= Cost(1), "costs are at least 1");
    CKPLAN_CHECK(cost.forward <= kMaxTotalCost && cost.backward <= kMaxTotalCost,
                 "costs are in the range that graphs allow");
    CKPLAN_CHECK(cost.forward_workspace >= Bytes(0) && cost.backward_workspace >= Bytes(0),
                 "workspace sizes are not negative");
  }
  CKPLAN_CHECK(LookUpCosts(*table, names, "costs.json").ok(), "every name in the table is found");
  names.push_back("a name that the table does not have");
  CKPLAN_CHECK(table->contains(names.back()) || !LookUpCosts(*table, names, "costs.json").ok(),
               "a missing name is an error");
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
  CKPLAN_CHECK(read.ok() && *read == *plan,
               "writing and reading a plan made from decisions preserves it");
  request.decisions = ReadDecisionsJson(text, "plan.json").value();
  const Result<Plan> again = make_plan(graph, request);
  CKPLAN_CHECK(again.ok() && again->schedule == plan->schedule,
               "a plan's steps can be read as decisions");
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
  CKPLAN_CHECK(again.ok(), "a written graph can be read: " +
                               (again.ok() ? std::string() : again.error().message));
  CKPLAN_CHECK(*again == *graph, "writing and reading a graph preserves it");
  if (graph->nodes().size() > kMaxPlannedGraphNodes) return;
  PlanRequest request;
  request.algorithm = "chen-sqrt";
  const Result<Plan> plan = MakePlan(*graph, request, {});
  if (!plan.ok()) {
    CKPLAN_CHECK(plan.error().code == ErrorCode::kUnsupported, plan.error().message);
    return;
  }
  CKPLAN_CHECK(plan->figures.peak <= plan->figures.arena,
               "the arena is at least as large as the peak");
}

}  // namespace ckplan
