// Tests --shard: one device's share of a model's constants, from reading the model to its plan.
#include <doctest/doctest.h>

#include <string>

#include "lib/files/emit/json_graph.h"
#include "lib/files/input/load_source.h"
#include "lib/files/input/plan_file.h"
#include "lib/files/input/size_reader.h"
#include "lib/planning/planner/fit.h"
#include "lib/planning/planner/planner.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

const std::string kShardedModel = "testdata/models/resnet18.onnx";

PlanRequest Sharded(std::optional<Sharding> sharding) {
  PlanRequest request;
  request.dims = {{"N", 4}};
  request.sharding = sharding;
  request.optimizer = Optimizer::kAdam;
  request.algorithm = "chen-greedy";
  return request;
}

Bytes ConstantsOfPlan(const Plan& plan) { return TotalConstants(plan.figures); }

TEST_CASE("sharding: a plan's steps and peak stay, and its constants are those of one device") {
  const PlanRequest whole_request = Sharded(std::nullopt);
  const Source whole = LoadSource(kShardedModel, whole_request).value();
  const Plan whole_plan = MakePlan(whole, whole_request, {}).value();
  Bytes before = ConstantsOfPlan(whole_plan);
  for (const ShardingSystem system :
       {ShardingSystem::kZero1, ShardingSystem::kZero2, ShardingSystem::kZero3}) {
    const Sharding sharding{system, 8};
    CAPTURE(TextOf(sharding));
    const PlanRequest request = Sharded(sharding);
    const Source source = LoadSource(kShardedModel, request).value();
    const Plan plan = MakePlan(source, request, {}).value();
    CHECK(plan.request.sharding == sharding);
    CHECK(plan.schedule == whole_plan.schedule);
    CHECK(plan.figures.peak == whole_plan.figures.peak);
    CHECK(plan.figures.constants.inputs == whole_plan.figures.constants.inputs);
    CHECK(plan.figures.optimizer_state == 2 * source.graph.optimized().bytes);
    CHECK(ConstantsOfPlan(plan) < before);
    before = ConstantsOfPlan(plan);
    CHECK(FindPlanFileFaults({source, plan, kShardedModel}).empty());
    for (Bytes ConstantMemory::*const member :
         {&ConstantMemory::parameters, &ConstantMemory::parameter_gradients,
          &ConstantMemory::unsharded}) {
      Plan damaged = plan;
      damaged.figures.constants.*member += Bytes(1);
      CHECK(FindPlanFileFaults({source, damaged, kShardedModel}).size() == 1);
    }
    // The graph that `ckplan graph` writes has the same constants.
    const TensorGraph again = ReadGraphJson(WriteGraphJson(source.graph), "graph.json").value();
    CHECK(again.constants() == source.graph.constants());
    CHECK(again.optimized().bytes == source.graph.optimized().bytes);
    CHECK(again.optimized().tensors == source.graph.optimized().tensors);
  }
}

TEST_CASE("sharding: the total budget covers what one device has, the budget on the peak nothing") {
  PlanRequest request = Sharded(Sharding{ShardingSystem::kFsdp, 8});
  const Source source = LoadSource(kShardedModel, request).value();
  const Bytes constants =
      TotalConstants(source.graph.constants(), 2 * source.graph.optimized().bytes);
  const Bytes peak = KeepAllPeak(source.step()) - Bytes(1);
  request.total_budget = Budget::Of(peak + constants);
  const Plan total = MakePlan(source, request, {}).value();
  CHECK(total.request.budget == Budget::Of(peak));
  request.total_budget = {};
  request.budget = Budget::Of(peak);
  CHECK(MakePlan(source, request, {}).value().schedule == total.schedule);
}

TEST_CASE(
    "sharding: what fits one of eight devices is more than what fits one that has everything") {
  FitRequest request{ReaderOf(kShardedModel), SizeReaderOf(kShardedModel), Sharded(std::nullopt),
                     "N"};
  request.plan.memory = Budget::Of(Bytes(int64_t{1} << 30));
  request.plan.reserve = Bytes(0);
  request.plan.dims.clear();
  const Fit whole = FindFit(request, {}).value();
  request.plan.sharding = {ShardingSystem::kZero3, 8};
  const Fit sharded = FindFit(request, {}).value();
  CHECK(sharded.rows.front().size > whole.rows.front().size);
  CHECK(sharded.rows.front().need() <= request.plan.memory.bytes);
  CHECK(sharded.plan.sharding == request.plan.sharding);
}

TEST_CASE("sharding: what cannot be divided is refused") {
  PlanRequest arriving = Sharded(Sharding{ShardingSystem::kZero2, 8});
  arriving.gradients = ParameterGradients::kArriving;
  const Result<Source> refused = LoadSource(kShardedModel, arriving);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == ErrorCode::kUsage);
  CHECK(refused.error().remedy.settings.front().name == "gradients");
}

}  // namespace
}  // namespace ckplan
