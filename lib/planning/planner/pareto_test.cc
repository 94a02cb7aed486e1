#include "lib/planning/planner/pareto.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <stop_token>
#include <string>

#include "lib/base/rng.h"
#include "lib/files/input/load_source.h"
#include "lib/planning/planner/peak_budget.h"
#include "lib/planning/planner/planner.h"
#include "lib/planning/planner/registry.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/instances.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

Source SourceOf(const TensorGraph& graph) { return {graph, {}, PlanRequest(), false, {}, {}}; }

PlanRequest RequestBy(std::string_view algorithm) {
  PlanRequest request;
  request.algorithm = algorithm;
  request.effort = SearchEffort::kQuick;
  return request;
}

}  // namespace

TEST_CASE("pareto: more memory always costs less time, and plans for each point's peak agree") {
  int points_beyond_one = 0;
  for (uint64_t seed = 1; seed <= Instances(6); ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomGraphOptions options;
    options.nodes = 9;
    const TensorGraph graph = RandomTensorGraph(rng, options);
    for (const char* const algorithm : {"best", "chen-greedy", "exact-dp", "keep-all"}) {
      CAPTURE(algorithm);
      const ParetoCurve curve = TracePareto(SourceOf(graph), RequestBy(algorithm), {}).value();
      REQUIRE_FALSE(curve.points.empty());
      CHECK(curve.baseline_peak == KeepAllPeak(graph));
      CHECK(curve.step == graph.forward_cost() + graph.backward_cost());
      for (size_t i = 0; i < curve.points.size(); ++i) {
        const CurvePoint& point = curve.points[i];
        if (i > 0) {
          ++points_beyond_one;
          CHECK(point.peak > curve.points[i - 1].peak);
          CHECK(point.overhead < curve.points[i - 1].overhead);
        }
        PlanRequest again = RequestBy(algorithm);
        again.budget = Budget::Of(point.peak);
        const Plan plan = MakePlan(graph, again, {}).value();
        CHECK(plan.figures.overhead <= point.overhead);
      }
      // No curve by best ends above the least peak that it finds.
      if (std::string_view(algorithm) == kBestAlgorithm) {
        PlanRequest least = RequestBy(algorithm);
        least.budget = {Budget::Kind::kMin, Bytes(0), 0};
        CHECK(curve.points.front().peak <= MakePlan(graph, least, {}).value().figures.peak);
      }
      // The last point is the plan for a budget with which everything could be kept.
      CHECK(curve.points.back().peak <= curve.baseline_peak);
    }
  }
  CHECK(points_beyond_one > 0);
}

TEST_CASE("pareto: over a link to the host each point has a plan with its peak there") {
  PlanRequest request = RequestBy("best");
  request.offload = ParseLink("c2c").value();
  request.dims = {{"N", 256}};
  const Source source = LoadSource("testdata/models/tiny_mlp.onnx", request).value();
  for (const char* const algorithm : {"best", "offload-largest", "dtr"}) {
    CAPTURE(algorithm);
    PlanRequest own = request;
    own.algorithm = algorithm;
    if (std::string_view(algorithm) != kBestAlgorithm) own.effort = PlanRequest().effort;
    const ParetoCurve curve = TracePareto(source, own, {}).value();
    REQUIRE(curve.host_peaks.size() == curve.points.size());
    bool moves = false;
    for (size_t i = 0; i < curve.points.size(); ++i) {
      PlanRequest again = own;
      again.budget = Budget::Of(curve.points[i].peak);
      const Plan plan = MakePlan(source, again, {}).value();
      CHECK(plan.figures.overhead <= curve.points[i].overhead);
      moves |= curve.host_peaks[i] > Bytes(0);
    }
    CHECK(moves == (std::string_view(algorithm) != "dtr"));
  }
  PlanRequest without = request;
  without.offload.reset();
  const Source kept = LoadSource("testdata/models/tiny_mlp.onnx", without).value();
  CHECK(TracePareto(kept, without, {}).value().host_peaks.empty());
}

TEST_CASE("pareto: a curve whose search was stopped is none, whatever was found by then") {
  Rng rng(1);
  const TensorGraph graph = RandomTensorGraph(rng, RandomGraphOptions());
  std::stop_source stop;
  stop.request_stop();
  for (const char* const algorithm : {"best", "chen-greedy", "exact-dp", "keep-all"}) {
    CAPTURE(algorithm);
    const Result<ParetoCurve> curve =
        TracePareto(SourceOf(graph), RequestBy(algorithm), {stop.get_token()});
    REQUIRE_FALSE(curve.ok());
    CHECK(curve.error().code == ErrorCode::kTimeout);
  }
}

TEST_CASE("pareto: the points within a memory are plans that fit it with the allocator") {
  Rng rng(3);
  RandomGraphOptions options;
  options.nodes = 12;
  options.max_bytes = 40 << 20;
  const TensorGraph graph = RandomTensorGraph(rng, options);
  const Source source = SourceOf(graph);
  PlanRequest request = RequestBy("best");
  request.optimizer = Optimizer::kAdam;
  request.memory = Budget::Of(Bytes(int64_t{1} << 40));
  const ParetoCurve traced = TracePareto(source, request, {}).value();
  REQUIRE(traced.points.size() > 2);
  REQUIRE(traced.plans.size() == traced.points.size());
  const auto need_of = [&](const Plan& plan) {
    return AccountFor({source.step(), request, Bytes(0)}, plan.schedule, plan.figures.peak).need();
  };
  Bytes least = need_of(traced.plans.front());
  for (const Plan& asked : traced.plans) {
    request.memory.bytes = Bytes(int64_t{1} << 40);
    request.memory.bytes = need_of(asked);
    CAPTURE(request.memory.bytes.count());
    least = std::min(least, request.memory.bytes);
    ParetoCurve curve = traced;
    REQUIRE(DropPlansAboveMemory(source, request, {}, &curve).ok());
    const auto fitting =
        std::count_if(traced.plans.begin(), traced.plans.end(),
                      [&](const Plan& plan) { return need_of(plan) <= request.memory.bytes; });
    CHECK(curve.points.size() == static_cast<size_t>(fitting));
    REQUIRE(curve.accountings.size() == curve.points.size());
    for (size_t i = 0; i < curve.points.size(); ++i) {
      CHECK(curve.plans[i].figures.peak == curve.points[i].peak);
      CHECK(curve.accountings[i].need() == need_of(curve.plans[i]));
      CHECK(curve.accountings[i].need() <= request.memory.bytes);
    }
    CHECK(MakePlan(source, request, {}).ok());
  }
  // Where no point fits, the answer is that of a plan for the memory.
  request.memory.bytes = Bytes(least.count() / 2);
  ParetoCurve curve = traced;
  const Result<Done> left = DropPlansAboveMemory(source, request, {}, &curve);
  REQUIRE_FALSE(left.ok());
  CHECK(left.error().code == ErrorCode::kInfeasible);
  CHECK(left.error().message == MakePlan(source, request, {}).error().message);
  curve = traced;
  request.memory = {};
  REQUIRE(DropPlansAboveMemory(source, request, {}, &curve).ok());
  CHECK(curve.points == traced.points);
}

TEST_CASE("pareto: what has no curve") {
  Rng rng(1);
  const TensorGraph graph = RandomTensorGraph(rng);
  const auto code_of = [&](const PlanRequest& request) {
    return TracePareto(SourceOf(graph), request, {}).error().code;
  };
  CHECK(code_of(RequestBy("auto")) == ErrorCode::kUsage);
  CHECK(code_of(RequestBy("nobody")) == ErrorCode::kUsage);
  PlanRequest with_budget = RequestBy("best");
  with_budget.budget = Budget::Of(Bytes(100));
  CHECK(code_of(with_budget) == ErrorCode::kUsage);
}

}  // namespace ckplan
