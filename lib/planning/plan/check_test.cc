#include "lib/planning/plan/check.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "lib/base/rng.h"
#include "lib/planning/plan/assemble.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

// A plan by an algorithm that proves nothing.
Plan PlanOf(const TensorGraph& graph, const Schedule& schedule) {
  Plan plan = AssemblePlan(graph, schedule, IdVector<NodeId, int32_t>(graph.nodes().size()));
  plan.request.algorithm = "chen-sqrt";
  return plan;
}

Plan PlanKeeping(const TensorGraph& graph, const KeptSet& kept) {
  return PlanOf(graph, LowerStrategy(graph, kept));
}

// a → b → c → d with b dropped; the backward of each node reads its input and its output.
struct Example {
  TensorGraph graph = GraphFromText("a:400@1 -> b:200@3 -> c:100@5 -> d:50@7");
  Plan plan;
  Example() {
    KeptSet kept{IdVector<NodeId, bool>(4, true)};
    kept.is_kept[NodeId(1)] = false;
    plan = PlanKeeping(graph, kept);
  }
};

// A topological order that differs from the graph's: it always takes the last of the ready nodes.
std::vector<NodeId> LatestFirst(const TensorGraph& graph) {
  std::vector<NodeId> order;
  IdVector<NodeId, bool> is_done(graph.nodes().size());
  const auto is_ready = [&](NodeId id) {
    const std::vector<TensorId>& inputs = graph.node(id).inputs;
    return !is_done[id] && std::all_of(inputs.begin(), inputs.end(), [&](TensorId t) {
      return graph.is_input(t) || is_done[graph.tensor(t).producer];
    });
  };
  while (order.size() < graph.nodes().size()) {
    NodeId last;
    for (const NodeId id : graph.nodes().ids()) last = is_ready(id) ? id : last;
    order.push_back(last);
    is_done[last] = true;
  }
  return order;
}

}  // namespace

TEST_CASE("check: it accepts every assembled plan of random graphs and strategies") {
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomGraphOptions options;
    options.nodes = static_cast<int>(rng.Between(1, 15));
    const TensorGraph graph = RandomTensorGraph(rng, options);
    KeptSet kept;
    for (size_t i = 0; i < graph.nodes().size(); ++i) kept.is_kept.push_back(rng.Chance(50));
    const std::vector<std::string> faults = CheckPlan(graph, PlanKeeping(graph, kept));
    CHECK(faults == std::vector<std::string>{});
  }
}

TEST_CASE("check: each damage to a plan is found and named") {
  struct Row {
    const char* part_of_message;
    std::function<void(Plan*)> damage;
  };
  const Row rows[] = {
      {"peak_bytes: the plan says 1", [](Plan* p) { p->figures.peak = Bytes(1); }},
      {"overhead_cost", [](Plan* p) { p->figures.overhead += Cost(1); }},
      {"baseline_peak_bytes", [](Plan* p) { p->figures.baseline_peak += Bytes(1); }},
      {"forward_cost", [](Plan* p) { p->figures.forward_cost += Cost(1); }},
      {"arena_bytes", [](Plan* p) { p->figures.arena += Bytes(1); }},
      {"static_allocation_bytes: missing", [](Plan* p) { p->figures.static_allocations.reset(); }},
      {"parameters", [](Plan* p) { p->figures.constants.parameters += Bytes(1); }},
      {"parameter_gradients", [](Plan* p) { p->figures.constants.parameter_gradients = Bytes(9); }},
      {"inputs", [](Plan* p) { p->figures.constants.inputs = Bytes(9); }},
      {"optimizer_state: the plan says 1,", [](Plan* p) { p->figures.optimizer_state = Bytes(1); }},
      {"lower_bound_cost: 4 is not a lower bound of the overhead of 3",
       [](Plan* p) { p->figures.lower_bound_cost = Cost(4); }},
      {"lower_bound_cost: 2 is less than the overhead of 3, which the plan calls optimal",
       [](Plan* p) {
         p->figures.lower_bound_cost = Cost(2);
         p->figures.is_optimal = true;
       }},
      {"paper_budget_bytes: 7 was requested",
       [](Plan* p) { p->request.paper_budget = Budget::Of(Bytes(7)); }},
      {"liveness: false was requested", [](Plan* p) { p->request.uses_liveness = false; }},
      {"node \"c\": the plan's \"name\" differs", [](Plan* p) { p->labels[NodeId(2)].name = "b"; }},
      {"node \"c\": the plan's \"op\" differs", [](Plan* p) { p->labels[NodeId(2)].op = "x"; }},
      {"node \"c\": the plan's \"outputs\" differs",
       [](Plan* p) { p->labels[NodeId(2)].outputs[0].bytes += Bytes(1); }},
      {"the plan has decisions for 4 nodes and names for 3, but the graph has 4",
       [](Plan* p) { p->labels.resize(3); }},
      {"peak: missing", [](Plan* p) { p->peak.reset(); }},
      {"peak: the plan says step 99", [](Plan* p) { p->peak->step = 99; }},
      {"peak: row 0 must be \"a\" with 400 bytes",
       [](Plan* p) { p->peak->live[0].bytes += Bytes(1); }},
      {"peak: row 1 must be", [](Plan* p) { p->peak->live[1].index ^= 1; }},
      {"peak: row 1 must be", [](Plan* p) { p->peak->live.resize(1); }},
      {"peak: row 0 must be", [](Plan* p) { p->peak->live.clear(); }},
      {"buffers", [](Plan* p) { p->peak->live.push_back(p->peak->live[0]); }},
      {"above the budget", [](Plan* p) { p->request.budget = Budget::Of(Bytes(10)); }},
      {"no offset", [](Plan* p) { p->offsets.pop_back(); }},
      {"offsets for", [](Plan* p) { p->offsets.push_back(Bytes(0)); }},
      {"overlaps", [](Plan* p) { p->offsets[1] = p->offsets[0]; }},
      {"offset 0 (\"a\") is negative", [](Plan* p) { p->offsets[0] = Bytes(-400); }},
      {"offset 0 (\"a\") is 9223372036854775807: with 400 bytes there, the end overflows",
       [](Plan* p) { p->offsets[0] = Bytes::Max(); }},
      {"offset 0 (\"a\") is 4001, which is not a multiple of align_bytes, 2",
       [](Plan* p) {
         p->request.align_bytes = 2;
         p->offsets[0] = Bytes(4001);
       }},
      {"node \"b\": the plan says keep",
       [](Plan* p) { p->decisions[NodeId(1)].action = NodeAction::kKeep; }},
      {"with 2 recomputations", [](Plan* p) { p->decisions[NodeId(1)].recompute_count = 2; }},
      {"the plan has decisions for 5 nodes", [](Plan* p) { p->decisions.push_back({}); }},
      {"\"b\" is read but not in memory",  // b is needed by c before its first run
       [](Plan* p) { std::swap(p->schedule.steps[1], p->schedule.steps[2]); }},
      {"no node or tensor number 44", [](Plan* p) { p->schedule.steps[0].index = 44; }},
      {"of 4 nodes ran backward", [](Plan* p) { p->schedule.steps.pop_back(); }},
      {"a second loss",
       [](Plan* p) { p->schedule.steps.insert(p->schedule.steps.begin() + 5, Step::Loss()); }},
      {"runs backward twice",
       [](Plan* p) { p->schedule.steps.push_back(Step::Backward(NodeId(0))); }},
      {"a backward step before the loss",
       [](Plan* p) {
         p->schedule.steps.insert(p->schedule.steps.begin() + 4, Step::Backward(NodeId(3)));
       }},
      {"a free step, but the schedule",
       [](Plan* p) { p->schedule.steps.push_back(Step::Free(TensorId(0))); }},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.part_of_message));
    Example example;
    row.damage(&example.plan);
    const std::vector<std::string> faults = CheckPlan(example.graph, example.plan);
    bool is_named = false;
    std::string all;
    for (const std::string& fault : faults) {
      is_named |= fault.find(row.part_of_message) != std::string::npos;
      all += fault + "\n";
    }
    CAPTURE(all);
    CHECK(is_named);
  }
}

TEST_CASE("check: the baseline is keep-all in the graph's order, whatever the plan's order is") {
  int differing = 0;  // Plans whose own order needs more or less than the graph's.
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = RandomTensorGraph(rng, RandomGraphOptions());
    const Plan plan = PlanOf(graph, KeepAllSchedule(LatestFirst(graph)));
    CHECK(plan.figures.baseline_peak == KeepAllPeak(graph));
    CHECK(CheckPlan(graph, plan) == std::vector<std::string>{});
    differing += plan.figures.peak == plan.figures.baseline_peak ? 0 : 1;
  }
  CHECK(differing > 10);
}

TEST_CASE("check: with explicit frees, a free that is missing or too early is found") {
  Example example;
  Schedule schedule = KeepAllSchedule({NodeId(0), NodeId(1), NodeId(2), NodeId(3)});
  schedule.frees = FreePolicy::kExplicit;
  for (int32_t t = 0; t < 4; ++t) schedule.steps.push_back(Step::Free(TensorId(t)));
  Plan plan = PlanOf(example.graph, schedule);
  plan.request.uses_liveness = false;
  CHECK(CheckPlan(example.graph, plan).empty());

  Plan leak = plan;
  leak.schedule.steps.pop_back();
  CHECK(CheckPlan(example.graph, leak).front().find("still in memory at the end") !=
        std::string::npos);
  Plan early = plan;
  std::rotate(early.schedule.steps.begin() + 8, early.schedule.steps.begin() + 9,
              early.schedule.steps.begin() + 10);
  CHECK(CheckPlan(example.graph, early).front().find("is read but not in memory") !=
        std::string::npos);
}

}  // namespace ckplan
