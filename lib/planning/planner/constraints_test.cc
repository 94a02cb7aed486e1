// Tests constraints with every algorithm: no plan breaks one, and best is no worse than any other.
#include "lib/planning/plan/constraints.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "lib/base/rng.h"
#include "lib/planning/mip/mip.h"
#include "lib/planning/plan/check.h"
#include "lib/planning/plan/check_constraints.h"
#include "lib/planning/planner/planner.h"
#include "lib/planning/planner/registry.h"
#include "lib/problem/schedule/expand.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/instances.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

constexpr uint64_t kSeeds = Instances(uint64_t{64});

// Returns a request for a quick plan in which each node is free, kept, recomputed or never run
// again.
PlanRequest RandomConstraints(Rng* rng, const TensorGraph& graph) {
  PlanRequest request;
  request.effort = SearchEffort::kQuick;
  for (const Node& node : graph.nodes()) {
    NamePatterns* const lists[] = {&request.keep, &request.recompute, &request.never_rerun};
    const int64_t list = rng->Between(0, 5);
    if (list < 3) lists[list]->push_back(node.name);
  }
  if (!HasConstraints(request)) request.keep.push_back(graph.node(NodeId(0)).name);
  return request;
}

// Checks the constraints independently, by the names of the nodes and their runs after the loss.
bool BreaksNone(const TensorGraph& graph, const PlanRequest& request, const Schedule& schedule) {
  const auto is_in = [](const NamePatterns& names, const std::string& name) {
    return std::count(names.begin(), names.end(), name) > 0;
  };
  std::map<std::string, int> runs;
  std::set<std::string> made_for_backward;
  bool has_loss = false;
  for (const Step& step : schedule.steps) {
    has_loss = has_loss || step.kind == StepKind::kLoss;
    if (step.kind == StepKind::kLoss) continue;
    const Node& node = graph.node(step.node());
    const bool is_forward = step.kind == StepKind::kForward;
    const bool is_again = is_forward && runs[node.name] > 0;
    for (const TensorId read : is_forward ? node.inputs : node.backward_reads) {
      const NodeId producer = graph.tensor(read).producer;
      if (producer.is_none()) continue;
      const std::string& name = graph.node(producer).name;
      const bool is_for_backward = !is_forward || (is_again && has_loss);
      if (!is_for_backward || !is_in(request.recompute, name)) continue;
      if (made_for_backward.count(name) == 0) return false;
    }
    if (!is_forward) continue;
    if (is_again && has_loss) made_for_backward.insert(node.name);
    const bool is_once = is_in(request.keep, node.name) || is_in(request.never_rerun, node.name);
    if (is_again && is_once) return false;
    ++runs[node.name];
  }
  return has_loss;
}

TensorGraph DrawnGraph(uint64_t seed) {
  Rng rng(seed);
  if (seed % 2 == 0) return RandomDag(rng, static_cast<int>(rng.Between(1, 8)), 40, 20, 9);
  RandomGraphOptions options;
  options.nodes = static_cast<int>(rng.Between(1, 8));
  return RandomTensorGraph(rng, options);
}

bool IsTried(const SolverInfo& info, const TensorGraph& graph) {
  return info.name != "checkmate" || (HasMipSolver() && graph.nodes().size() <= 5);
}

}  // namespace

TEST_CASE("constraints: no plan of any algorithm breaks one, and best is no worse than any") {
  int plans = 0;
  int refused = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    CAPTURE(seed);
    const TensorGraph graph = DrawnGraph(seed);
    Rng rng(seed);
    PlanRequest request = RandomConstraints(&rng, graph);
    const PlanRequest without_budget = request;
    PlanRequest least = request;
    least.budget.kind = Budget::Kind::kMin;
    const Result<Plan> reached = MakePlan(graph, least, {});
    REQUIRE_MESSAGE(reached.ok(), reached.error().message);
    CHECK(BreaksNone(graph, request, reached->schedule));
    const Bytes low = reached->figures.peak;
    const int64_t high = std::max(low, reached->figures.baseline_peak).count();
    request.budget = Budget::Of(Bytes(rng.Between(low.count(), high)));
    const Result<Plan> best = MakePlan(graph, request, {});
    REQUIRE_MESSAGE(best.ok(), best.error().message);
    CHECK(BreaksNone(graph, request, best->schedule));
    CHECK(best->request.keep == request.keep);
    for (const SolverInfo& info : AllSolvers()) {
      if (!IsTried(info, graph)) continue;
      CAPTURE(std::string(info.name));
      for (const PlanRequest* base :
           {&std::as_const(request), &without_budget, &std::as_const(least)}) {
        PlanRequest own = *base;
        own.algorithm = info.name;
        const Result<Plan> plan = MakePlan(graph, own, {});
        if (!plan.ok()) {
          const ErrorCode code = plan.error().code;
          CHECK((code == ErrorCode::kInfeasible || code == ErrorCode::kUnsupported));
          ++refused;
          continue;
        }
        ++plans;
        CHECK(CheckPlan(graph, *plan).empty());
        CHECK(BreaksNone(graph, request, plan->schedule));
        if (base == &request) CHECK(best->figures.overhead <= plan->figures.overhead);
        if (base == &least) CHECK(low <= plan->figures.peak);
      }
    }
  }
  CHECK(plans > refused);
}

TEST_CASE("constraints: plans in any order, and of joint graphs, break none") {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    CAPTURE(seed);
    const TensorGraph graph = DrawnGraph(seed);
    Rng rng(seed);
    PlanRequest request = RandomConstraints(&rng, graph);
    request.order = StepOrder::kFree;
    const Result<Plan> free = MakePlan(graph, request, {});
    REQUIRE_MESSAGE(free.ok(), free.error().message);
    CHECK(CheckPlan(graph, *free).empty());
    CHECK(BreaksNone(graph, request, free->schedule));

    const JointGraph joint = ExpandForAnyOrder(graph).graph;
    for (const std::string_view algorithm : {"best", "dtr", "keep-all", "torch-budget"}) {
      CAPTURE(std::string(algorithm));
      PlanRequest own = request;
      own.order = StepOrder::kModel;
      own.algorithm = algorithm;
      const Result<Plan> plan = MakePlan(joint, own, {});
      REQUIRE_MESSAGE(plan.ok(), plan.error().message);
      CHECK(CheckPlan(joint, *plan).empty());
      CHECK(BrokenConstraints(joint, own, plan->schedule).empty());
    }
  }
}

TEST_CASE("constraints: a plan that breaks one does not pass the checker") {
  const TensorGraph graph = GraphFromText("a:4@1 -> b:9@3 -> c:9@1 -> d:1@2");
  PlanRequest request;
  request.budget.kind = Budget::Kind::kMin;
  Plan plan = MakePlan(graph, request, {}).value();
  REQUIRE(CheckPlan(graph, plan).empty());
  const NodeId again(static_cast<int32_t>(
      std::find_if(plan.decisions.begin(), plan.decisions.end(),
                   [](const NodeDecision& decision) { return decision.recompute_count > 0; }) -
      plan.decisions.begin()));
  REQUIRE(static_cast<size_t>(again.index()) < graph.nodes().size());
  const std::string& name = graph.node(again).name;
  plan.request.never_rerun = {name};
  CHECK(CheckPlan(graph, plan) ==
        std::vector<std::string>{"constraints: \"" + name +
                                 "\" runs twice, but must never run again"});
  plan.request.never_rerun = {"nobody"};
  CHECK(CheckPlan(graph, plan) ==
        std::vector<std::string>{"constraints: request.never_rerun: nothing is called \"nobody\""});
}

TEST_CASE("constraints: what cannot be obeyed is refused") {
  const TensorGraph graph = GraphFromText("a:4@1 -> b:9@3 -> c:9@1 -> d:1@2");
  PlanRequest request;
  request.keep = {"nobody"};
  CHECK(MakePlan(graph, request, {}).error().code == ErrorCode::kUsage);
  request.algorithm = "chen-sqrt";
  CHECK(MakePlan(graph, request, {}).error().code == ErrorCode::kUsage);
  request.keep = {"a"};
  CHECK(MakePlan(graph, request, {}).ok());
  request.uses_liveness = false;
  CHECK(MakePlan(graph, request, {}).error().code == ErrorCode::kUsage);
  // Everything must be kept, but the budget is below that: it is proven that nothing fits.
  request = PlanRequest();
  request.keep = {"*"};
  const Bytes all = MakePlan(graph, request, {})->figures.peak;
  request.budget = Budget::Of(all - Bytes(1));
  const Error error = MakePlan(graph, request, {}).error();
  CHECK(error.code == ErrorCode::kInfeasible);
  REQUIRE(!error.notes.empty());
  CHECK(error.notes.back().find("under the constraints fits") != std::string::npos);
  // Given decisions are checked against the constraints, but not changed.
  request = PlanRequest();
  request.algorithm = kGivenAlgorithm;
  request.decisions = Decisions{Decisions::Form::kKept, {{{"a", -1}}}, {}, {}};
  request.keep = {"a"};
  CHECK(MakePlan(graph, request, {}).ok());
  request.keep = {"c"};
  const Result<Plan> broken = MakePlan(graph, request, {});
  REQUIRE_FALSE(broken.ok());
  CHECK(broken.error().code == ErrorCode::kUsage);
  CHECK(broken.error().message.find("the decisions violate the constraints: \"c\" runs twice") !=
        std::string::npos);
}

}  // namespace ckplan
