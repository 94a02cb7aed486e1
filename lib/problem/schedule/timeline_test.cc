#include "lib/problem/schedule/timeline.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "lib/base/rng.h"
#include "lib/problem/schedule/canonical_strategy.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_graph.h"
#include "lib/testing/random_schedule.h"

namespace ckplan {
namespace {

using ByKind = std::array<Bytes, kMemoryKinds>;

StepMemory Memory(int64_t kept, int64_t passing, int64_t recomputed, int64_t gradients,
                  int64_t after) {
  return {{Bytes(kept), Bytes(passing), Bytes(recomputed), Bytes(gradients), Bytes(0)},
          Bytes(after)};
}

// The contents of a buffer during a step: the last version written to it up to that step.
MemoryKind KindAt(const Timeline& timeline, size_t buffer, int32_t step) {
  if (timeline.buffers[buffer].kind == BufferKind::kGradient) return MemoryKind::kGradients;
  MemoryKind kind = MemoryKind::kWorkspace;
  for (const Version& version : timeline.versions) {
    if (version.buffer == static_cast<int32_t>(buffer) && version.made_at <= step) {
      kind = KindOf(timeline, version);
    }
  }
  return kind;
}

// The contents of memory right after a tick of a step, computed from the definition.
ByKind LiveAt(const Timeline& timeline, int64_t tick, int32_t step) {
  ByKind live;
  for (size_t i = 0; i < timeline.buffers.size(); ++i) {
    const Buffer& buffer = timeline.buffers[i];
    if (buffer.begin > tick || tick >= buffer.end) continue;
    live[static_cast<size_t>(KindAt(timeline, i, step))] += buffer.bytes;
  }
  return live;
}

Bytes Sum(const ByKind& live) {
  Bytes sum;
  for (const Bytes bytes : live) sum += bytes;
  return sum;
}

void CheckByDefinition(const Timeline& timeline) {
  const std::vector<StepMemory> curve = TraceMemory(timeline);
  REQUIRE(curve.size() == timeline.step_bytes.size());
  int64_t tick = -1;  // The last tick of the step before.
  for (size_t k = 0; k < curve.size(); ++k) {
    CAPTURE(k);
    const auto step = static_cast<int32_t>(k);
    ByKind highest = LiveAt(timeline, tick, step);
    int64_t last = tick;
    for (const Buffer& buffer : timeline.buffers) {
      if (buffer.first_step == step) last = std::max(last, buffer.begin);
      if (buffer.last_step == step) last = std::max(last, buffer.end);
    }
    while (tick < last) {
      const ByKind live = LiveAt(timeline, ++tick, step);
      if (Sum(live) > Sum(highest)) highest = live;
    }
    CHECK(curve[k].by_kind == highest);
    CHECK(curve[k].total() == timeline.step_bytes[k]);
    CHECK(curve[k].after == Sum(LiveAt(timeline, tick, step)));
  }
}

}  // namespace

TEST_CASE("memory curve: a chain of three whose middle is recomputed, worked by hand") {
  // a:4 → b:2 → c:1; the backward of each node reads its inputs and its output. a and c are kept;
  // only c reads the first b.
  //                        kept passing recomputed gradients   then gone
  //   f(a)                    4                                                          4
  //   f(b)                    4       2                                                  6
  //   f(c)                    5       2                        b                         5
  //   loss                    5                            1                             6
  //   f(b)                    5                  2         1                             8
  //   backward of c           5                  2       1+2   c, gradient of c          8
  //   backward of b           4                  2       2+4   b, gradient of b          8
  //   backward of a           4                            4   a, gradient of a          0
  const TensorGraph graph = GraphFromText("a:4 -> b:2 -> c:1");
  KeptSet kept{IdVector<NodeId, bool>(3, true)};
  kept.is_kept[NodeId(1)] = false;
  const std::vector<StepMemory> expected = {
      Memory(4, 0, 0, 0, 4), Memory(4, 2, 0, 0, 6), Memory(5, 2, 0, 0, 5), Memory(5, 0, 0, 1, 6),
      Memory(5, 0, 2, 1, 8), Memory(5, 0, 2, 3, 8), Memory(4, 0, 2, 6, 8), Memory(4, 0, 0, 4, 0)};
  const std::vector<StepMemory> curve =
      TraceMemory(BuildTimeline(graph, LowerStrategy(graph, kept)));
  REQUIRE(curve.size() == expected.size());
  for (size_t step = 0; step < curve.size(); ++step) {
    CAPTURE(step);
    CHECK(curve[step].by_kind == expected[step].by_kind);
    CHECK(curve[step].after == expected[step].after);
  }
}

TEST_CASE("memory curve: a result written in place takes over the bytes of its input") {
  // c:4 → r:4, written in place of c; the backward of r reads only r. c is passing memory while it
  // is made; the same buffer is kept memory from r on.
  TensorGraphParts parts = PartsOf(GraphFromText("c:4 -> r:4"));
  Node& relu = parts.nodes[NodeId(1)];
  relu.backward_reads = {TensorId(1)};
  relu.in_place = {{TensorId(1), TensorId(0)}};
  parts.nodes[NodeId(0)].backward_reads.clear();
  const TensorGraph graph = TensorGraph::Create(std::move(parts)).value();
  const Schedule schedule = KeepAllSchedule({NodeId(0), NodeId(1)});
  const std::vector<StepMemory> curve = TraceMemory(BuildTimeline(graph, schedule));
  CHECK(curve[0].by_kind == Memory(0, 4, 0, 0, 4).by_kind);
  CHECK(curve[1].by_kind == Memory(4, 0, 0, 0, 4).by_kind);
}

TEST_CASE("memory curve: it equals the timeline's contents by definition and splits the peak") {
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomGraphOptions options;
    options.nodes = static_cast<int>(rng.Between(1, 12));
    const TensorGraph graph = RandomTensorGraph(rng, options);
    const KeptSet kept = RandomKeptSet(rng, graph);
    const Schedule schedule =
        seed % 3 == 0 ? LowerWithoutLiveness(graph, kept) : LowerStrategy(graph, kept);
    const Timeline timeline = BuildTimeline(graph, schedule);
    CheckByDefinition(timeline);

    const std::vector<StepMemory> curve = TraceMemory(timeline);
    Bytes highest;
    for (const StepMemory& step : curve) highest = std::max(highest, step.total());
    CHECK(highest == Simulator(graph).Run(schedule)->peak);

    ByKind at_peak;
    for (const PeakBuffer& live : FindPeakBuffers(timeline)) {
      const Buffer& buffer = timeline.buffers[static_cast<size_t>(live.buffer)];
      const MemoryKind kind =
          buffer.kind == BufferKind::kGradient ? MemoryKind::kGradients
          : buffer.kind == BufferKind::kWorkspace
              ? MemoryKind::kWorkspace
              : KindOf(timeline, timeline.versions[static_cast<size_t>(live.version)]);
      at_peak[static_cast<size_t>(kind)] += buffer.bytes;
    }
    CHECK(curve[timeline.peak_step].by_kind == at_peak);
  }
}

}  // namespace ckplan
