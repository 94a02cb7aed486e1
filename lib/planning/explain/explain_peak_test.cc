#include "lib/planning/explain/explain_peak.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/planning/explain/what_if.h"
#include "lib/planning/plan/assemble.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/instances.h"
#include "lib/testing/plans/random_plan.h"
#include "lib/testing/random_graph.h"
#include "lib/testing/random_joint_graph.h"
#include "lib/testing/random_schedule.h"

namespace ckplan {
namespace {

// Names such as "/a/b/c" nest modules.
TensorGraph NamedChain(const std::vector<std::string>& names) {
  std::vector<TextVertex> vertices;
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (size_t i = 0; i < names.size(); ++i) {
    vertices.push_back({names[i], Bytes(8), Cost(1)});
    if (i > 0) edges.emplace_back(static_cast<int32_t>(i) - 1, static_cast<int32_t>(i));
  }
  return GraphFromVertices("named", vertices, edges);
}

using Paths = std::vector<std::string>;

// The modules that share the memory if each node's tensor, of eight bytes, is in memory.
Paths PathsOfShares(const std::vector<std::string>& nodes, size_t rows) {
  const TensorGraph graph = NamedChain(nodes);
  const TrainingStep planned(graph);
  std::vector<LiveAtPeak> live;
  for (const NodeId node : graph.nodes().ids()) {
    LiveAtPeak item;
    item.node = node;
    item.bytes = Bytes(8);
    live.push_back(item);
  }
  Paths found;
  Bytes sum;
  for (const ModuleShare& share : SharesOfModules(planned, live, rows)) {
    found.push_back(share.path);
    sum += share.total();
  }
  CHECK(sum == static_cast<int64_t>(nodes.size()) * Bytes(8));
  return found;
}

}  // namespace

TEST_CASE("explain peak: a chain by hand") {
  // Everything is kept. The peak is at d's backward, which reads c and d and makes c's gradient.
  const TensorGraph graph = GraphFromText("a:8@1 -> b:4@3 -> c:2@1 -> d:1@1");
  const TrainingStep planned(graph);
  const Plan plan = KeepAllPlan(graph);
  const PeakExplanation peak = ExplainPeak(TracePlan(planned, plan));
  CHECK(peak.bytes == plan.figures.peak);
  CHECK(peak.step == static_cast<size_t>(plan.peak->step));
  CHECK(peak.live.front().bytes == Bytes(8));
  // Nothing is freed before its last read, so a is held over the peak unless the peak is that of
  // its own backward.
  for (const Release& release : peak.next) {
    const LiveAtPeak& item = peak.live[release.live];
    CHECK_FALSE(item.is_used);
    CHECK(item.next_read > static_cast<int32_t>(peak.step));
    CHECK(release.then.overhead > Cost(0));
  }
}

TEST_CASE("explain peak: other micro-batches are counted apart from the buffers of one") {
  TensorGraphParts parts = PartsOf(GraphFromText("a:4 -> b:4 -> c:4 -> d:4"));
  parts.micro_batches = 3;
  const TensorGraph graph = TensorGraph::Create(std::move(parts)).value();
  const TrainingStep planned(graph);
  const Plan plan = KeepAllPlan(graph);
  const PeakExplanation peak = ExplainPeak(TracePlan(planned, plan));
  CHECK(peak.bytes == plan.figures.peak);
  CHECK(peak.other_micro_batches == Bytes(2 * 4 * 4));
  Bytes live = peak.other_micro_batches;
  for (const LiveAtPeak& item : peak.live) live += item.bytes;
  CHECK(live == peak.bytes);
  // What one micro-batch releases does not free memory of the others.
  REQUIRE_FALSE(peak.next.empty());
  for (const Release& release : peak.next) CHECK(release.then.peak < peak.bytes);
}

TEST_CASE("explain peak: what lives there is the peak, of any plan") {
  int64_t releases = 0, lowered = 0;
  for (uint64_t seed = 0; seed < Instances(400); ++seed) {
    CAPTURE(seed);
    const RandomPlanned random(seed);
    const PeakExplanation peak = ExplainPeak(TracePlan(*random.graph, random.plan));
    Bytes live, kinds, modules;
    for (const LiveAtPeak& item : peak.live) {
      live += item.bytes;
      CHECK(item.since <= static_cast<int32_t>(peak.step));
      CHECK(item.until >= static_cast<int32_t>(peak.step));
    }
    for (const Bytes bytes : peak.by_kind) kinds += bytes;
    for (const ModuleShare& share : SharesOfModules(*random.graph, peak.live, 4)) {
      modules += share.total();
    }
    CHECK(live == random.plan.figures.peak);
    CHECK(kinds == live);
    CHECK(modules == live);
    CHECK(peak.used <= live);
    CHECK(peak.largest.bytes <= live);
    for (size_t i = 0; i < peak.next.size(); ++i) {
      ++releases;
      if (peak.next[i].then.peak < peak.bytes) ++lowered;
      if (i > 0) CHECK(peak.next[i - 1].then.peak <= peak.next[i].then.peak);
    }
  }
  CHECK(releases > Instances(200));
  CHECK(lowered > Instances(20));
}

TEST_CASE("explain peak: over a link, what is held may be away as long as the plan needs") {
  int64_t moves = 0, lowered = 0, later = 0, sooner = 0, refused = 0;
  for (uint64_t seed = 0; seed < Instances(200); ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const JointGraph graph = RandomJointGraph(rng);
    const Link link = RandomLink(rng);
    const TrainingStep step = TrainingStep(graph).WithLink(&link);
    Plan plan = AssembleRuns(step, RandomRuns(rng, graph));
    plan.request.offload = link;
    const TracedPlan traced = TracePlan(step, plan);
    const PeakExplanation peak = ExplainPeak(traced);
    Bytes largest;
    for (const Release& release : peak.next) {
      if (!release.is_moved) continue;
      ++moves;
      const LiveAtPeak& item = peak.live[release.live];
      largest = std::max(largest, item.bytes);
      CHECK(release.then.transferred == 2 * item.bytes);
      CHECK(release.then.host_peak == item.bytes);
      CHECK(release.then.peak <= peak.bytes);
      if (release.then.peak == peak.bytes) continue;
      ++lowered;
      // It could also be away from its last use on, or until its next one.
      const auto made = static_cast<size_t>(traced.version(item.version).made_at);
      const auto next = static_cast<size_t>(item.next_read);
      size_t used = made;
      for (const int32_t read : traced.reads[static_cast<size_t>(item.version)]) {
        if (read < static_cast<int32_t>(peak.step)) used = static_cast<size_t>(read);
      }
      size_t gone = used + 1, back = next;
      while (traced.timeline.step_bytes[gone] <= release.then.peak) ++gone;
      while (traced.timeline.step_bytes[back - 1] <= release.then.peak) --back;
      const auto compare = [&](size_t from, size_t to, int64_t* better) {
        const auto away = Simulator(step).Run(MoveBetween(traced, item.tensor, made, from, to));
        if (!away.ok()) return;  // An alias is read meanwhile.
        CHECK(release.then.peak <= away->peak);
        CHECK(release.then.overhead <= away->overhead);
        *better += release.then.overhead < away->overhead ? 1 : 0;
      };
      compare(used + 1, back, &later);
      compare(gone, next, &sooner);
    }
    if (largest == Bytes(0)) continue;
    plan.request.host_budget = largest - Bytes(1);
    for (const Release& release : ExplainPeak(TracePlan(step, plan)).next) {
      if (release.is_moved) CHECK(release.then.host_peak < largest);
    }
    ++refused;
  }
  CHECK(moves > Instances(100));
  CHECK(lowered > Instances(20));
  CHECK(later > Instances(5));
  CHECK(sooner > Instances(5));
  CHECK(refused > Instances(50));
}

TEST_CASE("explain peak: no plan is below the largest single step") {
  int64_t met = 0;
  for (uint64_t seed = 0; seed < Instances(100); ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomGraphOptions options;
    options.nodes = 7;
    const TensorGraph graph = RandomTensorGraph(rng, options);
    const TrainingStep planned(graph);
    const Bytes bound = ExplainPeak(TracePlan(planned, KeepAllPlan(graph))).largest.bytes;
    Bytes least = Bytes::Max();
    for (int mask = 0; mask < 1 << graph.nodes().size(); ++mask) {
      IdVector<NodeId, bool> is_kept;
      for (size_t i = 0; i < graph.nodes().size(); ++i) is_kept.push_back((mask >> i & 1) != 0);
      const Plan plan = PlanOfKept(graph, is_kept);
      least = std::min(least, plan.figures.peak);
      // It is the same whichever plan is explained.
      if (mask == 0) CHECK(ExplainPeak(TracePlan(planned, plan)).largest.bytes == bound);
    }
    CHECK(bound <= least);
    if (bound == least) ++met;
  }
  CHECK(met > 0);
  for (uint64_t seed = 0; seed < Instances(100); ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const JointGraph graph = RandomJointGraph(rng);
    const TrainingStep planned(graph);
    const Plan plan = AssembleRuns(graph, RandomRuns(rng, graph));
    const Plan other = AssembleRuns(graph, RandomRuns(rng, graph));
    // Plans may drop operations, so the other plan need not have the largest step of all.
    const Bytes bound = ExplainPeak(TracePlan(planned, plan)).largest.bytes;
    const bool has_dropped =
        std::any_of(other.decisions.begin(), other.decisions.end(),
                    [](const NodeDecision& d) { return d.action == NodeAction::kDrop; });
    if (!has_dropped) CHECK(bound <= other.figures.peak);
  }
}

TEST_CASE("explain peak: modules that are too many are one row if only a number differs") {
  std::vector<std::string> nodes = {"/embed/gather"};
  for (int i = 0; i < 12; ++i) {
    for (const char* const part :
         {"attn/q", "attn/k", "attn/softmax", "mlp/up", "mlp/act", "add"}) {
      nodes.push_back("/h/" + std::to_string(i) + "/" + part);
    }
  }
  nodes.emplace_back("/h/11/extra/norm");
  CHECK(PathsOfShares(nodes, 12) ==
        Paths{"/h/*/attn", "/h/*/mlp", "/h/*", "/embed", "/h/11/extra"});
  CHECK(PathsOfShares(nodes, 4) == Paths{"/h", "/embed"});
  CHECK(PathsOfShares(nodes, 13).size() == 13);  // There is room for each layer.
}

TEST_CASE("explain peak: the largest modules are split first, up to a number of rows") {
  const auto paths = [](size_t rows) {
    return PathsOfShares({"/stem/conv", "/block1/a/conv", "/block1/a/relu", "/block1/b/conv",
                          "/block1/skip", "/block2/a/conv", "/block2/b/conv", "head"},
                         rows);
  };
  CHECK(paths(1) == Paths{"/block1", "/block2", "", "/stem"});
  CHECK(paths(6) == Paths{"/block1/a", "/block2", "", "/block1", "/block1/b", "/stem"});
  CHECK(paths(7) ==
        Paths{"/block1/a", "", "/block1", "/block1/b", "/block2/a", "/block2/b", "/stem"});
}

TEST_CASE("explain peak: a plan without liveness has nothing to release") {
  const TensorGraph graph = GraphFromText("a:8@1 -> b:4@3 -> c:2@1 -> d:1@1");
  Schedule schedule = KeepAllSchedule({NodeId(0), NodeId(1), NodeId(2), NodeId(3)});
  schedule.frees = FreePolicy::kExplicit;
  for (int32_t i = 0; i < 4; ++i) schedule.steps.push_back(Step::Free(TensorId(i)));
  const Plan plan = AssemblePlan(graph, schedule, IdVector<NodeId, int32_t>(4, 0));
  const TrainingStep planned(graph);
  const TracedPlan traced = TracePlan(planned, plan);
  CHECK_FALSE(ExplainPeak(traced).can_release);
  CHECK(traced.until[0] == 9);
}

}  // namespace ckplan
