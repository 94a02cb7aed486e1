#include "lib/planning/planner/memory_attempts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "lib/base/rng.h"
#include "lib/files/input/load_source.h"
#include "lib/planning/plan/accounting.h"
#include "lib/planning/plan/added_time.h"
#include "lib/planning/plan/outside.h"
#include "lib/planning/planner/fit.h"
#include "lib/planning/planner/peak_budget.h"
#include "lib/planning/planner/planner.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/instances.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

constexpr Bytes MiB(int64_t count) { return Bytes(count << 20); }

// A graph whose tensors are so large that the allocator's segments do not matter much.
TensorGraph LargeGraph(uint64_t seed) {
  Rng rng(seed);
  RandomGraphOptions options;
  options.nodes = 14;
  options.max_bytes = 40 << 20;
  return RandomTensorGraph(rng, options);
}

// Every node trains a parameter of 25 MiB.
TensorGraph WithGradients(const TensorGraph& graph) {
  TensorGraphParts parts = PartsOf(graph);
  parts.parameter_gradients = Bytes(0);
  for (Node& node : parts.nodes) {
    node.parameter_gradients = MiB(25);
    parts.parameter_gradients += MiB(25);
  }
  parts.optimized = parts.parameter_gradients;
  return TensorGraph::Create(std::move(parts)).value();
}

PlanRequest Within(Bytes memory, std::string_view algorithm = kBestAlgorithm) {
  PlanRequest request;
  request.algorithm = algorithm;
  request.memory = Budget::Of(memory);
  return request;
}

Bytes NeedOf(const TrainingStep& step, const PlanRequest& request, const Plan& plan) {
  return AccountFor({step, request, Bytes(0)}, plan.schedule, plan.figures.peak).need();
}

Bytes NeedOfKeepingAll(const TrainingStep& step, const PlanRequest& request) {
  return NeedOf(step, request, MakePlan(step, KeepAllRequest(request), {}).value());
}

// The memory that a refusal says to try.
Bytes MemoryToTry(const Error& refusal) {
  REQUIRE(refusal.remedy.settings.size() == 1);
  CHECK(refusal.remedy.settings[0].name == "memory");
  return Bytes(std::stoll(refusal.remedy.settings[0].value));
}

// Checks what the planner answers for this memory. Returns whether there is a plan.
bool HasCheckedPlan(const TrainingStep& step, const PlanRequest& request) {
  const auto sure = FindFallbackPlan(step, request, {}).value();
  const Result<Plan> plan = MakePlan(step, request, {});
  if (sure) {
    CHECK(NeedOf(step, request, *sure) <= request.memory.bytes);
    CHECK(plan.ok());
  }
  if (plan.ok()) {
    CHECK(NeedOf(step, request, *plan) <= request.memory.bytes);
    CHECK(MemoryAttempts(step, request).Fits(*plan));
    return true;
  }
  CHECK(plan.error().code == ErrorCode::kInfeasible);
  PlanRequest again = request;
  again.memory.bytes = MemoryToTry(plan.error());
  CHECK(again.memory.bytes > request.memory.bytes);
  const Result<Plan> enough = MakePlan(step, again, {});
  REQUIRE(enough.ok());
  CHECK(NeedOf(step, again, *enough) <= again.memory.bytes);
  return false;
}

}  // namespace

TEST_CASE("memory: plans fit with the allocator, and a refusal names a memory that is enough") {
  int plans = 0;
  int refusals = 0;
  for (uint64_t seed = 1; seed <= Instances(4); ++seed) {
    CAPTURE(seed);
    const TensorGraph graph = LargeGraph(seed);
    const TrainingStep step(graph);
    const Bytes whole = NeedOfKeepingAll(step, Within(MiB(1 << 20)));
    for (const char* const algorithm : {"best", "chen-sqrt"}) {
      CAPTURE(algorithm);
      for (const int64_t percent : {70, 90, 97}) {
        CAPTURE(percent);
        PlanRequest request = Within(Bytes(whole.count() / 100 * percent), algorithm);
        request.effort = SearchEffort::kQuick;
        ++(HasCheckedPlan(step, request) ? plans : refusals);
      }
    }
  }
  CHECK(plans > 0);
  CHECK(refusals > 0);
}

TEST_CASE("memory: plans use the memory of gradients that have not arrived yet") {
  int better = 0;
  for (uint64_t seed = 1; seed <= Instances(6); ++seed) {
    CAPTURE(seed);
    const TensorGraph graph = WithGradients(LargeGraph(seed));
    const TrainingStep step(graph);
    PlanRequest throughout = Within(MiB(1 << 20));
    throughout.gradients = ParameterGradients::kConstant;
    const Bytes whole = NeedOfKeepingAll(step, throughout);
    for (const int64_t percent : {60, 75, 90}) {
      CAPTURE(percent);
      PlanRequest request = Within(Bytes(whole.count() / 100 * percent));
      request.effort = SearchEffort::kQuick;
      const bool has_plan = HasCheckedPlan(step, request);
      throughout = request;
      throughout.gradients = ParameterGradients::kConstant;
      const Result<Plan> with_all = MakePlan(step, throughout, {});
      if (!with_all.ok()) {
        better += has_plan ? 1 : 0;
        continue;
      }
      REQUIRE(has_plan);
      const Cost overhead = MakePlan(step, request, {}).value().figures.overhead;
      CHECK(overhead <= with_all->figures.overhead);
      better += overhead < with_all->figures.overhead ? 1 : 0;
    }
  }
  CHECK(better > Instances(2));
}

TEST_CASE("memory: whatever keeps everything within it is never refused") {
  for (uint64_t seed = 1; seed <= Instances(4); ++seed) {
    CAPTURE(seed);
    const TensorGraph graph = LargeGraph(seed);
    const TrainingStep step(graph);
    const Bytes whole = NeedOfKeepingAll(step, Within(MiB(1 << 20)));
    for (const char* const algorithm : {"best", "chen-greedy", "chen-sqrt", "feng-linear"}) {
      CAPTURE(algorithm);
      CHECK(MakePlan(step, Within(whole, algorithm), {}).ok());
    }
  }
}

TEST_CASE("memory: a size that fit names has a plan of its added time, whatever the effort") {
  // The plans of normal and quick effort for these memories leave the allocator too little.
  for (const auto& [mib, percent] : {std::pair(790, 20.0), std::pair(970, 20.0)}) {
    const Bytes memory = MiB(mib);
    CAPTURE(memory.count());
    FitRequest asked;
    asked.read = ReaderOf("testdata/models/resnet18.onnx");
    asked.plan = Within(memory);
    asked.plan.optimizer = Optimizer::kAdam;
    asked.plan.effort = SearchEffort::kQuick;
    asked.added_percents = {percent};
    const Fit fit = FindFit(asked, {}).value();
    const FitRow& row = fit.rows.back();
    REQUIRE(row.size > fit.rows.front().size);
    for (const SearchEffort effort : {SearchEffort::kQuick, SearchEffort::kNormal}) {
      PlanRequest request = RequestOf(asked, fit, row);
      request.effort = effort;
      const Source source = asked.read(request).value();
      const Result<Plan> plan = MakePlan(source, source.request, {});
      REQUIRE(plan.ok());
      CHECK(AccountForPlan(source, *plan).need() <= memory);
      CHECK(plan->figures.overhead <= MostAdded(percent, source.step().cost()));
    }
  }
}

TEST_CASE("memory: attempts have less and less for tensors, and end") {
  const TensorGraph graph = LargeGraph(1);
  const TrainingStep step(graph);
  const PlanRequest request = Within(NeedOfKeepingAll(step, Within(MiB(1 << 20))));
  const Plan plan = MakePlan(step, KeepAllRequest(request), {}).value();
  MemoryAttempts attempts(step, request);
  Bytes before = request.memory.bytes - OutsideInMemory(request);
  int count = 0;
  while (const std::optional<PlanRequest> next = attempts.After(&plan)) {
    CHECK_FALSE(next->memory.is_given());
    CHECK(next->total_budget.bytes < before);
    before = next->total_budget.bytes;
    ++count;
  }
  CHECK(count == 7);
}

TEST_CASE("memory: a reserve leaves no allocator, so the plan is that of a budget for tensors") {
  const TensorGraph graph = LargeGraph(2);
  const TrainingStep step(graph);
  PlanRequest request = Within(Bytes(0));
  request.reserve = MiB(100);
  const Bytes whole = NeedOfKeepingAll(step, request);
  request.memory = Budget::Of(Bytes(whole.count() / 100 * 90));
  const Plan plan = MakePlan(step, request, {}).value();
  PlanRequest same = request;
  same.memory = {};
  same.reserve.reset();
  same.total_budget = Budget::Of(request.memory.bytes - MiB(100));
  CHECK(plan.schedule.steps == MakePlan(step, same, {}).value().schedule.steps);
  CHECK(NeedOf(step, request, plan) <= request.memory.bytes);
}

TEST_CASE("memory: the optimizer's step may need more than any plan saves") {
  TensorGraphParts parts = PartsOf(ChainOf({1000, 1000, 1000}));
  parts.parameters = parts.parameter_gradients = MiB(200);
  parts.optimized = MiB(200);
  parts.optimized_tensors = {{50 << 20, 4, 1}};
  const TensorGraph graph = TensorGraph::Create(std::move(parts)).value();
  const TrainingStep step(graph);
  // Parameters, gradients, two values of state, and a root of each element.
  PlanRequest request = Within(MiB(5 * 200));
  request.optimizer = Optimizer::kAdamW;
  const Result<Plan> refused = MakePlan(step, request, {});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == ErrorCode::kInfeasible);
  CHECK(refused.error().message.find("the optimizer step of adamw alone") != std::string::npos);
  CHECK_FALSE(FindFallbackPlan(step, request, {}).value().has_value());
  request.memory.bytes = MemoryToTry(refused.error());
  CHECK(MakePlan(step, request, {}).ok());
  CHECK(request.memory.bytes >= MinNeed(step, request));
}

}  // namespace ckplan
