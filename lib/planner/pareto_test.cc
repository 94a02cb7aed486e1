#include "lib/planner/pareto.h"

#include <doctest/doctest.h>

#include <stop_token>
#include <string>

#include "lib/base/rng.h"
#include "lib/planner/peak_budget.h"
#include "lib/planner/planner.h"
#include "lib/planner/registry.h"
#include "lib/schedule/simulate.h"
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

TEST_CASE("pareto: points that need more than the memory are left out, and the others stay") {
  Rng rng(3);
  RandomGraphOptions options;
  options.nodes = 12;
  const TensorGraph graph = RandomTensorGraph(rng, options);
  const Source source = SourceOf(graph);
  PlanRequest request = RequestBy("best");
  request.optimizer = Optimizer::kAdam;
  request.memory = Budget::Of(Bytes(1 << 20));
  request.reserve = Bytes(1000);
  const ParetoCurve whole = TracePareto(source, request, {}).value();
  REQUIRE(whole.points.size() > 2);
  // The curve itself does not depend on the memory.
  CHECK(whole.points.size() == TracePareto(source, RequestBy("best"), {}).value().points.size());
  const Bytes covered = CoveredByBudget(source.step(), request);
  CHECK(covered > Bytes(1000));
  for (size_t kept = 0; kept <= whole.points.size(); ++kept) {
    CAPTURE(kept);
    ParetoCurve curve = whole;
    request.memory.bytes = kept == 0 ? whole.points[0].peak + covered - Bytes(1)
                                     : whole.points[kept - 1].peak + covered;
    const Result<Done> left = LeaveOutWhatNeedsMore(source, request, &curve);
    if (kept > 0) {
      REQUIRE(left.ok());
      CHECK(curve.points.size() == kept);
      CHECK(curve.points.back() == whole.points[kept - 1]);
      continue;
    }
    REQUIRE_FALSE(left.ok());
    CHECK(left.error().code == ErrorCode::kInfeasible);
    REQUIRE(left.error().remedy.settings.size() == 1);
    CHECK(left.error().remedy.settings[0].value ==
          std::to_string((whole.points[0].peak + covered).count()));
  }
  ParetoCurve curve = whole;
  request.memory = {};
  REQUIRE(LeaveOutWhatNeedsMore(source, request, &curve).ok());
  CHECK(curve.points.size() == whole.points.size());
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
