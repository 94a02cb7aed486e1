// Tests --pipeline: plans of one stage, whose saved bytes count once for each micro-batch in
// flight.
#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "lib/base/rng.h"
#include "lib/files/input/load_source.h"
#include "lib/files/input/plan_file.h"
#include "lib/planning/algorithms/best/certificates.h"
#include "lib/planning/plan/check.h"
#include "lib/planning/planner/best_search.h"
#include "lib/planning/planner/planner.h"
#include "lib/planning/planner/registry.h"
#include "lib/problem/parallel/division.h"
#include "lib/problem/runs/run_problem.h"
#include "lib/problem/schedule/expand.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/timeline.h"
#include "lib/testing/best/brute_force.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/instances.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

const std::string kPipelineModel = "testdata/models/resnet18.onnx";

TensorGraph WithMicroBatches(const TensorGraph& graph, int64_t micro_batches) {
  TensorGraphParts parts = PartsOf(graph);
  parts.micro_batches = micro_batches;
  return TensorGraph::Create(std::move(parts)).value();
}

// With a dozen nodes, the proofs of `best` would take seconds.
TensorGraph SmallGraph(Rng& rng) { return RandomTensorGraph(rng, {.nodes = 6}); }

PlanRequest OfPipeline(int64_t micro_batches, std::string algorithm) {
  PlanRequest request;
  request.pipeline = PipelineStage{1, 0};
  request.micro_batches = micro_batches;
  request.schedule = PipelineSchedule::kGPipe;
  request.algorithm = std::move(algorithm);
  request.effort = SearchEffort::kQuick;
  return request;
}

// Returns the peak of running all micro-batches forward and then all backward, each by the plan.
Bytes CountedPeak(const TensorGraph& graph, const Schedule& schedule, int64_t micro_batches) {
  const Timeline timeline = BuildTimeline(graph, schedule);
  const auto loss = static_cast<int32_t>(timeline.loss_step);
  Bytes saved;
  for (const Version& version : timeline.versions) {
    if (version.made_at < loss && version.last_read > loss)
      saved += graph.tensor(version.tensor).bytes;
  }
  Bytes most;
  for (int64_t waiting = 0; waiting < micro_batches; ++waiting) {
    for (size_t k = 0; k <= timeline.loss_step; ++k) {
      most = std::max(most, timeline.step_bytes[k] + waiting * saved);
    }
  }
  for (int64_t waiting = micro_batches; waiting-- > 0;) {
    for (size_t k = timeline.loss_step; k < timeline.step_bytes.size(); ++k) {
      most = std::max(most, timeline.step_bytes[k] + waiting * saved);
    }
  }
  return most;
}

TEST_CASE("pipeline: a chain of three in two stages, by hand") {
  const TensorGraph graph = GraphFromText("a:4 -> b:4 -> c:4");
  const auto peak_of = [&](NodeRange nodes, int64_t micro_batches) {
    TensorGraphParts parts = CutStage(graph, nodes).parts;
    parts.micro_batches = micro_batches;
    return KeepAllPeak(TensorGraph::Create(std::move(parts)).value());
  };
  const NodeRange first{NodeId(0), NodeId(2)};
  const NodeRange second{NodeId(2), NodeId(3)};
  CHECK(peak_of(first, 1) == Bytes(16));
  CHECK(peak_of(first, 2) == Bytes(24));
  CHECK(peak_of(first, 3) == Bytes(32));
  CHECK(peak_of(second, 1) == Bytes(12));
}

TEST_CASE("pipeline: plans of random graphs need what counting all micro-batches gives") {
  Rng rng(23);
  for (int round = 0; round < Instances(12); ++round) {
    CAPTURE(round);
    const int64_t micro_batches = rng.Between(2, 5);
    const TensorGraph graph = WithMicroBatches(SmallGraph(rng), micro_batches);
    if (graph.nodes().empty()) continue;
    for (const std::string_view algorithm : {"keep-all", "chen-sqrt", "dtr", "approx-dp", "best"}) {
      CAPTURE(std::string(algorithm));
      PlanRequest request = OfPipeline(micro_batches, std::string(algorithm));
      Bytes before = Bytes::Max();
      for (const double percent : {100.0, 80.0, 60.0}) {
        request.budget = {Budget::Kind::kPercent, Bytes(0), percent};
        const Result<Plan> plan = MakePlan(graph, request, {});
        if (!plan.ok()) {
          CHECK(plan.error().code == ErrorCode::kInfeasible);
          continue;
        }
        CHECK(plan->figures.peak == CountedPeak(graph, plan->schedule, micro_batches));
        CHECK(plan->figures.peak <= plan->request.budget.bytes);
        CHECK(plan->request.budget.bytes <= before);
        before = plan->request.budget.bytes;
        Plan damaged = *plan;
        damaged.figures.other_micro_batches += Bytes(1);
        CHECK(CheckPlan(graph, damaged).size() == 1);
        damaged = *plan;
        ++damaged.request.micro_batches;
        CHECK(CheckPlan(graph, damaged).size() == 1);
      }
    }
  }
}

TEST_CASE("pipeline: the least and the unlimited plan count all micro-batches too") {
  constexpr std::string_view kAlgorithms[] = {"chen-greedy", "rotor", "best"};
  Rng rng(31);
  int compared = 0;
  for (size_t round = 0; round < Instances(size_t{12}); ++round) {
    CAPTURE(round);
    const TensorGraph graph = WithMicroBatches(SmallGraph(rng), 3);
    if (graph.nodes().empty()) continue;
    const std::string algorithm(kAlgorithms[round % std::size(kAlgorithms)]);
    CAPTURE(algorithm);
    PlanRequest request = OfPipeline(3, algorithm);
    const Result<Plan> any = MakePlan(graph, request, {});
    request.budget.kind = Budget::Kind::kMin;
    const Result<Plan> least = MakePlan(graph, request, {});
    if (!any.ok() || !least.ok()) continue;
    ++compared;
    CHECK(any->figures.peak == CountedPeak(graph, any->schedule, 3));
    CHECK(least->figures.peak == CountedPeak(graph, least->schedule, 3));
    CHECK(least->figures.peak <= any->figures.peak);
    request.budget = Budget::Of(least->figures.peak);
    CHECK(MakePlan(graph, request, {}).ok());
    request.budget = Budget::Of(least->figures.peak - Bytes(1));
    CHECK_FALSE(MakePlan(graph, request, {}).ok());
  }
  CHECK(compared > Instances(8));
}

// Searches all plans in the graph's own order.
TEST_CASE("pipeline: the bounds of best hold, and few of its plans are not optimal") {
  Rng rng(47);
  int compared = 0;
  int optimal = 0;
  int proven = 0;
  constexpr int kRounds = 40;  // The shares below mean nothing for a few plans.
  for (int round = 0; round < kRounds; ++round) {
    CAPTURE(round);
    const int64_t micro_batches = rng.Between(2, 4);
    const TensorGraph graph =
        WithMicroBatches(RandomTensorGraph(rng, {.nodes = 3, .max_bytes = 9}), micro_batches);
    const Expansion expansion = ExpandTensorGraph(graph);
    const RunProblem problem(expansion.graph, OthersOf(graph, expansion));
    const Runs order = RequiredOwnOrder(problem);
    if (problem.value_count > 20) continue;
    PlanRequest request = OfPipeline(graph.micro_batches(), "best");
    request.order = round % 4 == 0 ? StepOrder::kFree : StepOrder::kModel;
    for (const double percent : {85.0, 70.0}) {
      request.budget = {Budget::Kind::kPercent, Bytes(0), percent};
      const Result<Plan> plan = MakePlan(graph, request, {});
      if (!plan.ok()) continue;
      const Bytes budget = plan->request.budget.bytes;
      const auto least = ExhaustiveMinCost(problem, order, budget.count());
      const Certificate& certificate = plan->figures.certificate.value();
      CHECK(certificate.peak.bytes <= budget);
      if (!least) continue;
      const Cost added(*least - problem.total_cost);
      CHECK(plan->figures.lower_bound_cost.value() <= added);
      ++compared;
      optimal += plan->figures.overhead <= added;
      proven += plan->figures.lower_bound_cost == added;
    }
  }
  CAPTURE(compared);
  CAPTURE(optimal);
  CAPTURE(proven);
  CHECK(compared > kRounds / 2);
  CHECK(optimal * 100 >= compared * 95);
  CHECK(proven * 100 >= compared * 25);
}

TEST_CASE("pipeline: the refusal of a pattern of nodes of another stage names that stage") {
  PlanRequest request;
  request.dims = {{"N", 4}};
  request.pipeline = PipelineStage{3, 0};
  request.micro_batches = 8;
  for (const auto field :
       {&PlanRequest::keep, &PlanRequest::recompute, &PlanRequest::never_rerun}) {
    PlanRequest own = request;
    own.*field = {"/conv1/*", "!/fc/Gemm"};
    CHECK(LoadSource(kPipelineModel, own).ok());
    own.*field = {"/conv1/*", "op:Gemm"};
    const Result<Source> other = LoadSource(kPipelineModel, own);
    REQUIRE_FALSE(other.ok());
    CHECK(other.error().code == ErrorCode::kUsage);
    CHECK(other.error().message ==
          "\"op:Gemm\" matches nothing in stage 3/0: node \"/fc/Gemm\" is in stage 3/2");
  }
}

TEST_CASE("pipeline: the stages of a model have its constants, and shared ones each") {
  PlanRequest request;
  request.dims = {{"N", 4}};
  request.algorithm = "chen-greedy";
  const Source whole = LoadSource(kPipelineModel, request).value();
  request.micro_batches = 8;
  Bytes parameters, gradients;
  size_t nodes = 0;
  for (int64_t index = 0; index < 3; ++index) {
    CAPTURE(index);
    request.pipeline = PipelineStage{3, index};
    const Source stage = LoadSource(kPipelineModel, request).value();
    CHECK(stage.graph.micro_batches() == 3 - index);
    parameters += stage.graph.constants().parameters;
    gradients += stage.graph.constants().parameter_gradients;
    nodes += stage.graph.nodes().size();
    const Plan plan = MakePlan(stage, request, {}).value();
    CHECK(plan.request.pipeline == request.pipeline);
    CHECK((plan.figures.other_micro_batches > Bytes(0)) == (index < 2));
    CHECK(FindPlanFileFaults({stage, plan, kPipelineModel}).empty());
    Plan damaged = plan;
    damaged.request.schedule = PipelineSchedule::kGPipe;
    CHECK_FALSE(FindPlanFileFaults({stage, damaged, kPipelineModel}).empty());
  }
  CHECK(nodes == whole.graph.nodes().size());
  CHECK(parameters == whole.graph.constants().parameters);
  CHECK(gradients == whole.graph.constants().parameter_gradients);
}

TEST_CASE("pipeline: a stage may divide its constants as well") {
  PlanRequest request;
  request.dims = {{"N", 4}};
  request.pipeline = PipelineStage{3, 2};
  request.micro_batches = 8;
  const Source whole = LoadSource(kPipelineModel, request).value();
  request.sharding = Sharding{ShardingSystem::kZero3, 8};
  const Source divided = LoadSource(kPipelineModel, request).value();
  CHECK(divided.graph.constants().parameters < whole.graph.constants().parameters);
  CHECK(divided.graph.nodes() == whole.graph.nodes());
}

TEST_CASE("pipeline: requests that say half of it are refused") {
  const auto refusal = [](PlanRequest request) {
    request.dims = {{"N", 4}};
    const Result<Source> source = LoadSource(kPipelineModel, request);
    REQUIRE_FALSE(source.ok());
    CHECK(source.error().code == ErrorCode::kUsage);
    const auto& settings = source.error().remedy.settings;
    return settings.empty() ? "" : settings.front().name;
  };
  PlanRequest request;
  request.micro_batches = 8;
  CHECK(refusal(request) == "pipeline");
  request = {};
  request.stage_cuts = {"a"};
  CHECK(refusal(request) == "pipeline");
  request = {};
  request.schedule = PipelineSchedule::kGPipe;
  CHECK(refusal(request) == "pipeline");
  request = {};
  request.pipeline = PipelineStage{2, 0};
  CHECK(refusal(request) == "micro_batches");
  request.micro_batches = 4;
  request.gradients = ParameterGradients::kArriving;
  CHECK(refusal(request) == "gradients");
  request.gradients = ParameterGradients::kConstant;
  request.pipeline = PipelineStage{1000, 0};
  CHECK(refusal(request).empty());
}

}  // namespace
}  // namespace ckplan
