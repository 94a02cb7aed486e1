#include "lib/planning/algorithms/offload/greedy_offload.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "lib/base/rng.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/step_table.h"
#include "lib/testing/best/random_steps.h"

namespace ckplan {
namespace {

// Four layers of 8, 4, 16 and 2 bytes, each of which takes as long to make as it is drawn, and
// their gradients: a -> b -> c -> d -> D -> C -> B -> A.
JointGraph FourLayers() {
  JointGraphParts parts;
  const int64_t bytes[] = {8, 4, 16, 2, 1, 1, 1, 1};
  const int64_t costs[] = {8, 16, 4, 4, 8, 8, 16, 8};
  for (int i = 0; i < 8; ++i) {
    Value value;
    value.file_id = i;
    value.bytes = Bytes(bytes[i]);
    Operation op;
    op.file_id = i;
    op.cost = Cost(costs[i]);
    if (i > 0) op.reads.emplace_back(i - 1);
    if (i > 4) op.reads.emplace_back(7 - i);
    op.writes.push_back(parts.values.push_back(std::move(value)));
    parts.ops.push_back(std::move(op));
  }
  parts.results = {ValueId(7)};
  return JointGraph::Create(std::move(parts)).value();
}

OffloadTerms TermsFor(const JointGraph& graph) {
  OffloadTerms terms;
  terms.link.out_bytes_per_second = terms.link.in_bytes_per_second = 1'000'000'000;
  terms.may_move = MovableValues(graph);
  return terms;
}

std::string MovedBy(PrepareOffload prepare, const JointGraph& graph, const OffloadTerms& terms,
                    int64_t limit) {
  const auto solver = prepare(graph, terms, {}).value();
  const RunOutcome outcome = solver->Solve(limit, {}).value();
  std::string moved;
  for (const Step& step : outcome.schedule.value().steps) {
    if (step.kind == StepKind::kOut) moved += "abcdDCBA"[step.index];
  }
  return moved;
}

}  // namespace

TEST_CASE("greedy offload: each rule moves its own values first") {
  const JointGraph graph = FourLayers();
  const OffloadTerms terms = TermsFor(graph);
  // Keeping all takes 31 bytes at D, and 30 at C, which reads c.
  CHECK(MovedBy(PrepareOffloadEarliest, graph, terms, 24) == "a");
  CHECK(MovedBy(PrepareOffloadLargest, graph, terms, 30) == "c");
  CHECK(MovedBy(PrepareOffloadCostliest, graph, terms, 28) == "b");
  CHECK(MovedBy(PrepareOffloadEarliest, graph, terms, 31).empty());
}

TEST_CASE("greedy offload: what the link cannot carry is recomputed") {
  const JointGraph graph = FourLayers();
  OffloadTerms terms = TermsFor(graph);
  terms.link.out_bytes_per_second = 100'000'000;  // a takes 80 ns, and the forward pass 32.
  const auto solver = PrepareOffloadEarliest(graph, terms, {}).value();
  const RunOutcome outcome = solver->Solve(24, {}).value();
  CHECK_FALSE(HasTransfers(outcome.schedule.value()));
  CHECK(outcome.runs.size() > 8);
}

TEST_CASE("greedy offload: plans are valid and within the limit and the memory of the host") {
  int moved = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomStepOptions options;
    options.op_count = static_cast<int>(rng.Between(4, 40));
    options.percent_in_place = 20;
    options.percent_single_runs = 15;
    options.percent_aliases = seed % 2 == 0 ? 0 : 30;
    const JointGraph graph = MakeRandomStep(&rng, options);
    OffloadTerms terms = TermsFor(graph);
    terms.link.out_bytes_per_second = rng.Between(1, 40) * 100'000'000;
    if (rng.Chance(30)) terms.link.duplex = Duplex::kHalf;
    if (rng.Chance(30)) terms.host_budget = Bytes(rng.Between(0, 60));
    Simulator simulator(TrainingStep(graph).WithLink(&terms.link));
    for (const PrepareOffload prepare :
         {PrepareOffloadEarliest, PrepareOffloadLargest, PrepareOffloadCostliest}) {
      const auto solver = prepare(graph, terms, {}).value();
      const Knob knob = solver->knob();
      for (const int64_t limit : {knob.min, (knob.min + knob.max) / 2, knob.max}) {
        const RunOutcome outcome = solver->Solve(limit, {}).value();
        const Schedule& schedule = outcome.schedule.value();
        const Simulation measured = simulator.Run(schedule).value();
        CHECK(measured.peak.count() <= limit);
        if (terms.host_budget) CHECK(measured.host_peak <= *terms.host_budget);
        CHECK(RunsOf(schedule) == outcome.runs);
        moved += HasTransfers(schedule) ? 1 : 0;
      }
    }
  }
  CHECK(moved > 200);
}

}  // namespace ckplan
