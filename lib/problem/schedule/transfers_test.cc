#include "lib/problem/schedule/transfers.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/timeline.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/instances.h"
#include "lib/testing/naive_moves.h"
#include "lib/testing/random_graph.h"
#include "lib/testing/random_joint_graph.h"
#include "lib/testing/random_schedule.h"

namespace ckplan {

namespace {

// a (8 bytes) ─▶ b (2) ─▶ c (1) ─▶ d (2), which also reads a; d is the result.
JointGraph Skip() {
  return GraphOfOps({{"a", 8, 10, {}}, {"b", 2, 20, {0}}, {"c", 1, 30, {1}}, {"d", 2, 5, {0, 2}}});
}

// One nanosecond per byte in each direction, and a latency of one nanosecond.
const Link kLink{"pcie4", 1'000'000'000, 1'000'000'000, 1, Duplex::kFull};

Step Op(int32_t op) { return Step::Run(OpId(op)); }
const ValueId kA(0);
const ValueId kB(1);

Schedule InSteps(std::vector<Step> steps) { return {std::move(steps), FreePolicy::kLiveness}; }

std::string FaultOf(const JointGraph& graph, std::vector<Step> steps) {
  const Result<Simulation> simulation =
      Simulator(TrainingStep(graph).WithLink(&kLink)).Run(InSteps(std::move(steps)));
  return simulation.ok() ? "" : simulation.error().message;
}

}  // namespace

TEST_CASE("transfers: a value that leaves and comes back, worked by hand") {
  const JointGraph graph = Skip();
  const TrainingStep step = TrainingStep(graph).WithLink(&kLink);
  // 0 a | 1 out a | 2 b | 3 drop a | 4 c | 5 in a | 6 d
  const Schedule schedule =
      InSteps({Op(0), Step::Out(kA), Op(1), Step::Drop(kA), Op(2), Step::In(kA), Op(3)});
  const Simulation simulation = Simulator(step).Run(schedule).value();
  // b 8 + 2, drop 8 + 2, c 2 + 1, in 1 + 8, d 8 + 1 + 2.
  CHECK(simulation.peak == Bytes(11));
  CHECK(simulation.peak_step == 6);
  CHECK(simulation.host_peak == Bytes(8));
  CHECK(simulation.transferred == Bytes(16));
  // The copy out takes 9 from 10 on and is complete before b ends, at 30. The copy back begins when
  // c ends, at 60, and d waits for it until 69.
  CHECK(simulation.cost == Cost(65));
  CHECK(simulation.stall == Cost(9));
  CHECK(simulation.overhead == Cost(9));
  const Transfers transfers = TransfersOf(step, schedule);
  CHECK(transfers.copies ==
        std::vector<LinkCopy>{{1, CopyWay::kOut, kA, Bytes(8), Cost(10), Cost(19)},
                              {5, CopyWay::kIn, kA, Bytes(8), Cost(60), Cost(69)}});
  CHECK(transfers.host == std::vector<HostCopy>{{kA, Bytes(8), 1, 6}});
  CHECK(transfers.steps.at(6) == StepTime{Cost(9), Cost(69), Cost(74)});
  CHECK(transfers.makespan == Cost(74));
  const Timeline timeline = BuildTimeline(step, schedule);
  CHECK(timeline.peak == Bytes(11));
  CHECK(timeline.step_bytes[4] == Bytes(3));
}

TEST_CASE("transfers: an early load hides its copy, and a drop waits for a late one") {
  const JointGraph graph = Skip();
  const TrainingStep step = TrainingStep(graph).WithLink(&kLink);
  const auto stall = [&](std::vector<Step> steps, const Link& link) {
    return TransfersOver(link, step, InSteps(std::move(steps))).stall;
  };
  const std::vector<Step> early = {Op(0),        Op(1), Step::Out(kA), Step::Drop(kA),
                                   Step::In(kA), Op(2), Op(3)};
  // The drop waits for 9, and the load is complete before c ends.
  CHECK(stall(early, kLink) == Cost(9));
  Link slow = kLink;
  slow.in_bytes_per_second /= 10;
  // The load takes 81, of which c hides 30.
  CHECK(stall(early, slow) == Cost(9 + 51));
}

TEST_CASE("transfers: copies of both ways share a half-duplex link") {
  // a and b leave; a comes back while b leaves.
  const JointGraph graph =
      GraphOfOps({{"a", 40, 1, {}}, {"b", 60, 1, {}}, {"c", 1, 50, {1}}, {"d", 1, 1, {0, 2}}});
  const std::vector<Step> steps = {Op(0),          Step::Out(kA),  Op(1),
                                   Step::Drop(kA), Step::Out(kB),  Step::In(kA),
                                   Op(2),          Step::Drop(kB), Op(3)};
  const TrainingStep step = TrainingStep(graph).WithLink(&kLink);
  Link half = kLink;
  half.duplex = Duplex::kHalf;
  // a leaves from 1 to 42, b from 42 to 103. With separate links, a is back at 83; otherwise at
  // 144.
  CHECK(TransfersOver(kLink, step, InSteps(steps)).makespan == Cost(104));
  CHECK(TransfersOver(half, step, InSteps(steps)).makespan == Cost(145));
}

TEST_CASE("transfers: an alias comes back with the value whose memory it shares") {
  JointGraphParts parts = PartsOf(Skip());
  parts.values[kB].alias_of = kA;
  const JointGraph graph = JointGraph::Create(std::move(parts)).value();
  const std::vector<Step> moves = {Op(0), Op(1), Step::Out(kA), Step::Drop(kA)};
  std::vector<Step> steps = moves;
  steps.insert(steps.end(), {Step::In(kA), Op(2), Op(3)});
  CHECK(FaultOf(graph, steps) == "");
  steps = moves;
  steps.insert(steps.end(), {Op(2), Step::In(kA), Op(3)});
  CHECK(FaultOf(graph, steps) ==
        "schedule: step 4 (run of \"c\") reads value \"b\", which is not in memory");
}

TEST_CASE("transfers: a copy on the host stays good for another run and a second load") {
  const JointGraph graph =
      GraphOfOps({{"a", 8, 10, {}}, {"b", 2, 20, {0}}, {"c", 1, 30, {0, 1}}, {"d", 2, 5, {0, 2}}});
  const TrainingStep step = TrainingStep(graph).WithLink(&kLink);
  // b needs a from its producer, c from the host, d from the host again.
  const Schedule schedule = InSteps({Op(0), Step::Out(kA), Step::Drop(kA), Op(0), Op(1),
                                     Step::In(kA), Op(2), Step::In(kA), Op(3)});
  const Simulation simulation = Simulator(step).Run(schedule).value();
  CHECK(simulation.transferred == Bytes(24));
  CHECK(TransfersOf(step, schedule).host == std::vector<HostCopy>{{kA, Bytes(8), 1, 8}});
}

TEST_CASE("transfers: the host needs a copy until its last load is read, not until all loads are") {
  // b is a view of a. The first load brings it back, and d reads it after c has read the second.
  JointGraphParts parts = PartsOf(
      GraphOfOps({{"a", 8, 10, {}}, {"b", 8, 0, {0}}, {"c", 1, 30, {0}}, {"d", 2, 5, {1, 2}}}));
  parts.values[kB].alias_of = kA;
  const JointGraph graph = JointGraph::Create(std::move(parts)).value();
  const TrainingStep step = TrainingStep(graph).WithLink(&kLink);
  const Schedule schedule = InSteps(
      {Op(0), Op(1), Step::Out(kA), Step::Drop(kA), Step::In(kA), Step::In(kA), Op(2), Op(3)});
  REQUIRE(Simulator(step).Run(schedule).ok());
  CHECK(TransfersOf(step, schedule).host == std::vector<HostCopy>{{kA, Bytes(8), 2, 6}});
  CHECK(NaiveMoves(graph, schedule, kLink).Measure()->host_peak == 8);
}

TEST_CASE("transfers: every rule has a schedule that breaks it") {
  const JointGraph graph = Skip();
  const Step out = Step::Out(kA);
  const Step drop = Step::Drop(kA);
  const Step in = Step::In(kA);
  CHECK(FaultOf(graph, {Op(0), out, Op(1), drop, Op(2), Op(3)}) ==
        "schedule: step 5 (run of \"d\") reads value \"a\", which is not in memory");
  CHECK(FaultOf(graph, {out, Op(0), Op(1), Op(2), Op(3)}) ==
        "schedule: step 0 (out of \"a\") reads value \"a\", which is not in memory");
  CHECK(FaultOf(graph, {Op(0), out, out, drop, in, Op(1), Op(2), Op(3)}) ==
        "schedule: step 2 (out of \"a\") changes value \"a\" while its copy to the host is under "
        "way");
  CHECK(FaultOf(graph, {Op(0), out, in, drop, Op(1), Op(2), Op(3)}) ==
        "schedule: step 2 (in of \"a\") changes value \"a\" while its copy to the host is under "
        "way");
  CHECK(FaultOf(graph, {Op(0), out, Op(0), drop, in, Op(1), Op(2), Op(3)}) ==
        "schedule: step 2 (run of \"a\") changes value \"a\" while its copy to the host is under "
        "way");
  CHECK(FaultOf(graph, {Op(0), drop, Op(1), Op(2), Op(3)}) ==
        "schedule: step 1 (drop of \"a\") has no copy to the host to wait for");
  CHECK(FaultOf(graph, {Op(0), in, Op(1), Op(2), Op(3)}) ==
        "schedule: step 1 (in of \"a\") loads a value that is not on the host");
  CHECK(FaultOf(graph, {Op(0), Op(1), Op(2), out, Op(3)}) ==
        "schedule: value \"a\" is copied to the host and never dropped");
  CHECK(FaultOf(graph, {Op(0), Op(1), out, drop, in, Op(2), in, Op(3)}) ==
        "schedule: step 4 (in of \"a\") loads a value that no run reads");
  CHECK(
      FaultOf(graph, {Op(0), Op(1), Op(2), Op(3), Step::Out(ValueId(3)), Step::Drop(ValueId(3))}) ==
      "schedule: step 4 (out of \"d\") moves a result or a value without its own memory");
  CHECK(FaultOf(graph, {Op(0), Step::Out(ValueId(9)), Op(1), Op(2), Op(3)}) ==
        "schedule: step 1 (out) moves a value that the graph does not have");
  const Schedule moves = InSteps({Op(0), Op(1), out, drop, in, Op(2), Op(3)});
  CHECK(Simulator(graph).Run(moves).error().message ==
        "schedule: step 2 (out of \"a\") needs a link to the host");
}

TEST_CASE("transfers: what holds a result stays, also if the result is an alias") {
  JointGraphParts parts = PartsOf(Skip());
  parts.values[kB].alias_of = kA;
  parts.results = {kB, ValueId(3)};
  const JointGraph graph = JointGraph::Create(std::move(parts)).value();
  const IdVector<ValueId, bool> may_move = MovableValues(graph);
  CHECK(std::vector<bool>(may_move.begin(), may_move.end()) ==
        std::vector<bool>{false, false, true, false});
}

TEST_CASE("transfers: the simulator agrees with the naive one on random schedules") {
  int valid = 0;
  int invalid = 0;
  int with_stall = 0;
  for (uint64_t seed = 0; seed < Instances(6000); ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomJointOptions options;
    options.ops = static_cast<int>(rng.Between(2, 10));
    options.alias = 30;
    const JointGraph graph = RandomJointGraph(rng, options);
    const Link link = RandomLink(rng);
    const Schedule schedule = RandomMoves(rng, graph);
    if (!HasTransfers(schedule)) continue;
    const TrainingStep step = TrainingStep(graph).WithLink(&link);
    const Result<Simulation> simulation = Simulator(step).Run(schedule);
    const std::optional<NaiveFigures> naive = NaiveMoves(graph, schedule, link).Measure();
    REQUIRE(simulation.ok() == naive.has_value());
    (naive ? valid : invalid) += 1;
    if (!naive) continue;
    with_stall += naive->stall > 0;
    CHECK(simulation->peak.count() == naive->peak);
    CHECK(simulation->host_peak.count() == naive->host_peak);
    CHECK(simulation->stall.count() == naive->stall);
    CHECK(simulation->transferred.count() == naive->transferred);
    CHECK(simulation->overhead.count() == naive->makespan - graph.cost().count());
    const Transfers transfers = TransfersOf(step, schedule);
    CHECK(transfers.makespan.count() == naive->makespan);
    CHECK(transfers.steps.size() == schedule.steps.size());
    CHECK(BuildTimeline(step, schedule).peak == simulation->peak);
    const HostArena arena = PlaceOnHost(transfers.host);
    CHECK(arena.bytes >= simulation->host_peak);
    CHECK(arena.offsets.size() == transfers.host.size());
  }
  CHECK(valid > Instances(2000));
  CHECK(invalid > Instances(500));
  CHECK(with_stall > Instances(1000));
}

namespace {

// A graph whose in-place pairs all name one output of their node, as those of models do.
TensorGraph GraphLikeOfModel(Rng& rng) {
  RandomGraphOptions options;
  options.nodes = static_cast<int>(rng.Between(2, 12));
  TensorGraphParts parts = PartsOf(RandomTensorGraph(rng, options));
  for (Node& node : parts.nodes) {
    std::erase_if(node.in_place, [&](const InPlacePair& pair) {
      return pair.output != node.in_place.front().output;
    });
  }
  return TensorGraph::Create(std::move(parts)).value();
}

bool MovesAGradient(const TensorGraph& graph, const Schedule& schedule) {
  for (const Step& step : schedule.steps) {
    if (IsGradientTransfer(graph, step)) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("forward transfers: both forms need the same memory, at every step") {
  int compared = 0;
  int with_gradients = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = GraphLikeOfModel(rng);
    const Expansion expansion = ExpandTensorGraph(graph);
    const Link link = RandomLink(rng);
    const TrainingStep joint =
        TrainingStep(expansion.graph, graph, expansion.step_of).WithLink(&link);
    KeptSet kept{IdVector<NodeId, bool>(graph.nodes().size())};
    for (const NodeId id : graph.nodes().ids()) kept.is_kept[id] = rng.Chance(60);
    const std::vector<OpId> runs = RunsOf(expansion, LowerStrategy(graph, kept));
    Schedule schedule;
    Result<Schedule> forward = schedule;
    Result<Simulation> simulated = Simulation();
    for (int tries = 0; tries < 40; ++tries) {
      schedule = WithRandomMoves(rng, expansion.graph, runs);
      simulated = Simulator(joint).Run(schedule);
      if (!simulated.ok()) continue;
      forward = InForwardForm(graph, expansion, schedule);
      if (forward.ok()) break;
      CHECK(forward.error().message.find("which no later step reads") != std::string::npos);
    }
    if (!simulated.ok() || !forward.ok()) continue;
    const Timeline timeline = BuildTimeline(graph, *forward);
    CHECK(timeline.step_bytes == BuildTimeline(joint, schedule).step_bytes);
    CHECK(timeline.peak == simulated->peak);
    compared += HasTransfers(*forward) ? 1 : 0;
    with_gradients += MovesAGradient(graph, *forward) ? 1 : 0;
  }
  CHECK(compared > 50);
  CHECK(with_gradients > 10);
}

}  // namespace ckplan
