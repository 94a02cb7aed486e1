#include "lib/planning/plan/check_order.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/planning/plan/assemble.h"
#include "lib/planning/plan/check.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_graph.h"
#include "lib/testing/random_schedule.h"

namespace ckplan {
namespace {

TensorGraph RandomGraph(Rng& rng) {
  RandomGraphOptions options;
  options.nodes = static_cast<int>(rng.Between(2, 10));
  options.shared_parameter = 20;
  return RandomTensorGraph(rng, options);
}

// The fault in the order of the steps, or "".
std::string FaultOf(const TensorGraph& graph, const Schedule& schedule, bool is_free) {
  OrderCheck check(graph, schedule, is_free);
  for (const Step& step : schedule.steps) {
    const auto fault = step.kind == StepKind::kForward ? check.Forward(step.node())
                       : step.kind == StepKind::kLoss  ? check.Loss()
                                                       : check.Backward(step.node());
    if (fault) return *fault;
  }
  return check.End().value_or("");
}

// Runs everything forward and then everything backward in a random order; often only two neighbours
// of the reverse order are exchanged.
Schedule RandomBackward(Rng& rng, const TensorGraph& graph) {
  std::vector<NodeId> order;
  for (const NodeId id : graph.nodes().ids()) order.push_back(id);
  Schedule schedule = KeepAllSchedule(order);
  const auto nodes = static_cast<int64_t>(order.size());
  const auto at = [&](int64_t i) -> Step& {
    return schedule.steps[static_cast<size_t>(nodes + 1 + i)];
  };
  for (int64_t swaps = rng.Chance(60) ? 1 : nodes; swaps > 0; --swaps) {
    const int64_t i = rng.Between(0, nodes - 2);
    std::swap(at(i), at(i + 1));
  }
  return schedule;
}

Plan PlanOf(const TensorGraph& graph, const Schedule& schedule, StepOrder order) {
  Plan plan = AssemblePlan(graph, schedule, IdVector<NodeId, int32_t>(graph.nodes().size()));
  plan.request.algorithm = "given";
  plan.request.order = order;
  plan.figures.paper = {std::nullopt, plan.figures.peak, plan.figures.overhead};
  plan.figures.optimizer_state = Bytes(0);  // The state of sgd.
  return plan;
}

}  // namespace

TEST_CASE("check order: accepts the orders of backward steps that the simulator accepts") {
  int accepted = 0;
  int refused = 0;
  for (uint64_t seed = 1; seed <= 4000; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = RandomGraph(rng);
    const Schedule schedule = RandomBackward(rng, graph);
    const std::string fault = FaultOf(graph, schedule, /*is_free=*/true);
    CAPTURE(fault);
    CHECK(fault.empty() == Simulator(graph).Run(schedule).ok());
    (fault.empty() ? accepted : refused) += 1;
    if (!IsMirrored(schedule)) CHECK_FALSE(FaultOf(graph, schedule, false).empty());
  }
  CHECK(accepted > 1000);
  CHECK(refused > 1000);
}

TEST_CASE("check order: plans in random orders pass if the request allows any order") {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = RandomGraph(rng);
    const Schedule schedule =
        RandomSchedule::Make(rng, graph, static_cast<int>(rng.Between(0, 20)));
    std::string all;
    for (const std::string& fault : CheckPlan(graph, PlanOf(graph, schedule, StepOrder::kFree))) {
      all += fault + "\n";
    }
    CHECK(all.empty());
    const Plan in_model_order = PlanOf(graph, schedule, StepOrder::kModel);
    CHECK(CheckPlan(graph, in_model_order).empty() == IsMirrored(schedule));
  }
}

TEST_CASE("check order: names the step that is out of order") {
  // a → b → d, a → c → d; b and c train one parameter.
  TensorGraphParts parts = PartsOf(GraphFromText("a:1 -> b:1 -> d:1; a -> c:1 -> d"));
  parts.nodes[NodeId(1)].shared_parameters = parts.nodes[NodeId(2)].shared_parameters = {0};
  const TensorGraph graph = TensorGraph::Create(parts).value();
  for (TensorId id : parts.tensors.ids()) parts.tensors[id].requires_grad = id.index() != 0;
  const TensorGraph without = TensorGraph::Create(std::move(parts)).value();
  const auto fault = [](const TensorGraph& of, const std::vector<int>& backward) {
    Schedule schedule;
    for (const NodeId id : of.nodes().ids()) schedule.steps.push_back(Step::Forward(id));
    schedule.steps.push_back(Step::Loss());
    for (const int node : backward) schedule.steps.push_back(Step::Backward(NodeId(node)));
    return FaultOf(of, schedule, /*is_free=*/true);
  };
  CHECK(fault(graph, {3, 2, 1, 0}).empty());
  CHECK(fault(graph, {2, 3, 1, 0}) ==
        "\"c\" runs backward before the gradient of \"c\" is complete");
  CHECK(fault(graph, {3, 1, 2, 0}) ==
        "\"c\" adds to the gradient of \"a\" in a different order from the model");
  CHECK(fault(without, {3, 1, 2, 0}) ==
        "\"c\" adds to the gradient of a parameter in a different order from the model");
  CHECK(fault(without, {3, 2, 1, 3}) == "\"d\" runs backward twice");
  CHECK(fault(without, {3, 2, 1}) == "3 of 4 nodes ran backward");
}

}  // namespace ckplan
