#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/fuzzing/fuzz_targets.h"
#include "cli/fuzzing/testdata_graphs.h"
#include "lib/base/check.h"
#include "lib/base/rng.h"
#include "lib/files/emit/json_joint_graph.h"
#include "lib/files/emit/json_plan.h"
#include "lib/planning/plan/assemble.h"
#include "lib/planning/plan/check.h"
#include "lib/planning/planner/planner.h"
#include "lib/planning/planner/registry.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/timeline.h"
#include "lib/testing/naive_moves.h"
#include "lib/testing/naive_simulation.h"
#include "lib/testing/random_schedule.h"

namespace ckplan {
namespace {

constexpr size_t kMaxPlannedOps = 10;
// With twice as many operations, `best` may take half a second, or a minute under sanitizers.
constexpr size_t kMaxSearchedOps = 4;

void CheckTransfers(const JointGraph& graph, const Plan& plan) {
  const std::optional<NaiveFigures> naive =
      NaiveMoves(graph, plan.schedule, *plan.request.offload).Measure();
  CKPLAN_CHECK(naive.has_value(), "an accepted plan follows the transfer rules");
  CKPLAN_CHECK(naive->peak == plan.figures.peak.count(), "an accepted plan states its true peak");
  CKPLAN_CHECK(naive->host_peak == plan.figures.offload->host_peak.count(),
               "an accepted plan states its true host peak");
  CKPLAN_CHECK(naive->makespan - graph.cost().count() == plan.figures.overhead.count(),
               "an accepted plan states its true overhead");
}

// A plan that the checker accepted must also pass the naive replay.
void CheckByReplay(const JointGraph& graph, const Plan& plan) {
  const std::vector<OpId> runs = RunsOf(plan.schedule);
  if (plan.request.offload) {
    CheckTransfers(graph, plan);
  } else {
    NaiveRuns naive(graph, runs);
    CKPLAN_CHECK(naive.Peak() == plan.figures.peak, "an accepted plan states its true peak");
    CKPLAN_CHECK(naive.TotalCost() - graph.cost() == plan.figures.overhead,
                 "an accepted plan states its true overhead");
  }
  const std::vector<Buffer> buffers = BuildTimeline(graph, plan.schedule).buffers;
  for (const std::string& fault : NaiveArenaFaults(buffers, plan.offsets)) {
    CKPLAN_CHECK(fault.empty(), fault);
  }
  const Result<Plan> again = ReadPlanJson(WritePlanJson(plan, graph), graph, "written.json");
  CKPLAN_CHECK(again.ok(), "a written plan can be read");
  CKPLAN_CHECK(*again == plan, "writing and reading a plan preserves it");
}

// The simulator, the checker and the naive replay must agree on whether a random schedule with
// transfers is valid.
void CheckRandomTransfers(const JointGraph& graph) {
  Rng rng(graph.values().size());
  const Link link = RandomLink(rng);
  const TrainingStep step = TrainingStep(graph).WithLink(&link);
  const Schedule schedule = RandomMoves(rng, graph);
  const bool is_valid = NaiveMoves(graph, schedule, link).Measure().has_value();
  CKPLAN_CHECK(Simulator(step).Run(schedule).ok() == is_valid, "both simulators agree on validity");
  if (!is_valid) return;
  Plan plan = AssemblePlan(step, schedule);
  plan.request.algorithm = "dtr";
  plan.request.offload = link;
  CKPLAN_CHECK(CheckPlan(graph, plan).empty(),
               "the checker accepts every schedule that the simulator accepts");
  CheckByReplay(graph, plan);
}

// Plans for the minimum budget, and for one halfway to the peak of the graph's own order.
void PlanWith(std::string_view algorithm, const JointGraph& graph) {
  PlanRequest request;
  request.algorithm = algorithm;
  request.effort = SearchEffort::kQuick;
  request.budget.kind = Budget::Kind::kMin;
  const Result<Plan> minimum = MakePlan(graph, request, {});
  if (!minimum.ok()) {
    // Without a backward pass torch-budget has nothing to decide.
    CKPLAN_CHECK(minimum.error().code == ErrorCode::kUnsupported, minimum.error().message);
    return;
  }
  CheckByReplay(graph, *minimum);
  const Bytes low = minimum->figures.peak;
  const Bytes high = KeepAllPeak(graph);
  if (high <= low) return;
  request.budget = Budget::Of(low + Bytes((high - low).count() / 2));
  const Result<Plan> between = MakePlan(graph, request, {});
  CKPLAN_CHECK(between.ok(), "a budget above the minimum is feasible");
  CheckByReplay(graph, *between);
}

}  // namespace

void CheckJointGraph(const JointGraph& graph) {
  const Result<JointGraph> again = ReadJointGraphJson(WriteJointGraphJson(graph), "written.json");
  CKPLAN_CHECK(again.ok(), "a written graph can be read: " +
                               (again.ok() ? std::string() : again.error().message));
  CKPLAN_CHECK(*again == graph, "writing and reading a graph preserves it");
  const std::vector<OpId> order = OwnOrder(graph);
  const Result<Simulation> simulation = Simulator(graph).Run(order);
  CKPLAN_CHECK(simulation.ok(), "a graph's own order is a valid schedule");
  CKPLAN_CHECK(BuildTimeline(graph, order).peak == simulation->peak,
               "the timeline and the simulator agree");
}

void FuzzJointGraph(FuzzInput input) {
  const Result<JointGraph> graph = ReadJointGraphJson(TextOf(input), "graph.json");
  if (!graph.ok()) return;
  CheckJointGraph(*graph);
  if (graph->ops().size() > kMaxPlannedOps) return;
  for (const JointGraph& counted : {*graph, WithArrivingGradients(*graph)}) {
    CheckRandomTransfers(counted);
    for (const std::string_view algorithm : {"keep-all", "dtr", "torch-budget"}) {
      PlanWith(algorithm, counted);
    }
    if (graph->ops().size() <= kMaxSearchedOps) PlanWith(kBestAlgorithm, counted);
  }
}

bool IsAcceptedJointPlan(std::string_view text) {
  const Result<Plan> plan = ReadPlanJson(text, JointNetGraph(), "plan.json");
  return plan.ok() && CheckPlan(JointNetGraph(), *plan).empty();
}

void FuzzJointPlan(FuzzInput input) {
  const JointGraph& graph = JointNetGraph();
  const Result<Plan> plan = ReadPlanJson(TextOf(input), graph, "plan.json");
  if (!plan.ok() || !CheckPlan(graph, *plan).empty()) return;
  CheckByReplay(graph, *plan);
}

}  // namespace ckplan
