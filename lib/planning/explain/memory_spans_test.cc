#include "lib/planning/explain/memory_spans.h"

#include <doctest/doctest.h>

#include <array>

#include "lib/planning/explain/explain_peak.h"
#include "lib/problem/schedule/training_step.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/instances.h"
#include "lib/testing/plans/random_plan.h"

namespace ckplan {
namespace {

// The contents of memory at the highest moment of a step, by kind.
std::array<Bytes, kMemoryKinds> HeldAt(const MemorySpans& all, size_t step) {
  std::array<Bytes, kMemoryKinds> held;
  const int64_t moment = all.highest[step];
  for (const MemorySpan& span : all.spans) {
    if (span.begin > moment || span.end <= moment) continue;
    held[static_cast<size_t>(span.kind)] += span.bytes;
  }
  return held;
}

Bytes TotalOf(const std::array<Bytes, kMemoryKinds>& by_kind) {
  Bytes sum;
  for (const Bytes bytes : by_kind) sum += bytes;
  return sum;
}

TEST_CASE("memory spans: a chain by hand") {
  // forward a, b; loss: gradient of b; backward b: gradient of a; backward a.
  const TensorGraph graph = GraphFromText("a:8@1 -> b:4@3");
  const TrainingStep planned(graph);
  const Plan plan = KeepAllPlan(graph);
  const TracedPlan traced = TracePlan(planned, plan);
  const MemorySpans all = FindMemorySpans(traced);
  REQUIRE(all.step_begin.size() == plan.schedule.steps.size() + 1);
  REQUIRE(all.spans.size() >= 3);
  // Step 0 begins at moment 0 and makes a at moment 1.
  CHECK(all.spans[0].tensor == TensorId(0));
  CHECK(all.spans[0].begin == 1);
  CHECK(all.spans[0].bytes == Bytes(8));
  CHECK(all.spans[0].reads.front() == 1);
  CHECK(all.step_begin[1] == 2);
  CHECK(all.highest[0] == 1);
  // The plan keeps everything.
  CHECK(KeepAllMemory(traced) == traced.timeline.step_bytes);
}

TEST_CASE("memory spans: at every step of any plan they add up to what the step needs") {
  int64_t kinds_compared = 0;
  for (uint64_t seed = 0; seed < Instances(400); ++seed) {
    CAPTURE(seed);
    const RandomPlanned random(seed);
    const TracedPlan traced = TracePlan(*random.graph, random.plan);
    const MemorySpans all = FindMemorySpans(traced);
    const std::vector<StepMemory> curve = TraceMemory(traced.timeline, traced.kinds);
    for (size_t step = 0; step < traced.steps().size(); ++step) {
      CAPTURE(step);
      const std::array<Bytes, kMemoryKinds> held = HeldAt(all, step);
      CHECK(TotalOf(held) == traced.timeline.step_bytes[step]);
      CHECK(all.step_begin[step] <= all.highest[step]);
      CHECK(all.highest[step] < all.step_begin[step + 1]);
      // An alias of a joint graph's value does not change the kind of the memory.
      if (random.joint != nullptr) continue;
      CHECK(held == curve[step].by_kind);
      ++kinds_compared;
    }
    const PeakExplanation peak = ExplainPeak(traced);
    // If one operation writes over a value and makes an alias of it, either kind may count.
    if (!traced.steps().empty() && random.joint == nullptr) {
      CHECK(HeldAt(all, peak.step) == peak.by_kind);
    }
    for (const MemorySpan& span : all.spans) {
      CHECK(span.begin < span.end);
      for (const int32_t read : span.reads) {
        CHECK(all.step_begin[static_cast<size_t>(read) + 1] > span.begin);
        CHECK(all.step_begin[static_cast<size_t>(read)] <= span.end);
      }
    }
  }
  CHECK(kinds_compared > Instances(1000));
}

TEST_CASE("memory spans: keep-all has its peak in every plan that has all of its steps") {
  int64_t plans = 0;
  for (uint64_t seed = 0; seed < Instances(200); ++seed) {
    CAPTURE(seed);
    const RandomPlanned random(seed);
    const TracedPlan traced = TracePlan(*random.graph, random.plan);
    const std::vector<Bytes> memory = KeepAllMemory(traced);
    REQUIRE(memory.size() == traced.steps().size());
    Bytes highest;
    for (const Bytes bytes : memory) highest = std::max(highest, bytes);
    CHECK(highest <= random.plan.figures.baseline_peak);
    // A plan may leave out operations whose results are not needed.
    const Schedule keep_all = random.graph->KeepAll();
    if (traced.steps().size() < keep_all.steps.size()) continue;
    if (random.joint == nullptr) CHECK(highest == random.plan.figures.baseline_peak);
    ++plans;
  }
  CHECK(plans > Instances(50));
}

}  // namespace
}  // namespace ckplan
