// Plans with an optimizer's state, of models and of graph files that know their parameters or not.
#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "lib/files/emit/json_graph.h"
#include "lib/files/input/load_source.h"
#include "lib/files/input/plan_file.h"
#include "lib/planning/plan/optimizer_state.h"
#include "lib/planning/planner/planner.h"
#include "lib/planning/planner/source.h"
#include "lib/testing/temporary_folder.h"

namespace ckplan {
namespace {

constexpr const char* kTinyModel = "testdata/models/tiny_mlp.onnx";

PlanRequest With(Optimizer optimizer, bool has_master_weights) {
  PlanRequest request;
  request.algorithm = "keep-all";
  request.optimizer = optimizer;
  request.has_master_weights = has_master_weights;
  return request;
}

TEST_CASE("optimizer: a plan states the state of each tensor, and its graph file the same") {
  PlanRequest request = With(Optimizer::kAdam8Bit, false);
  request.dims = {{"N", 8}};
  const Source source = LoadSource(kTinyModel, request).value();
  const Plan plan = MakePlan(source, request, {}).value();
  CHECK(plan.figures.optimizer_state == OptimizerState(request, source.graph.optimized()));
  CHECK(FindPlanFileFaults({source, plan, kTinyModel}).empty());
  Plan damaged = plan;
  damaged.figures.optimizer_state += Bytes(1);
  CHECK(FindPlanFileFaults({source, damaged, kTinyModel}).size() == 1);
  const TemporaryFolder folder;
  std::ofstream(folder / "graph.json") << WriteGraphJson(source.graph);
  request.dims.clear();
  const Source again = LoadSource(folder / "graph.json", request).value();
  CHECK(again.warnings.empty());
  CHECK(MakePlan(again, request, {}).value().figures.optimizer_state ==
        plan.figures.optimizer_state);
}

TEST_CASE("optimizer: a graph file with the sum of its gradients says what it does not know") {
  const std::string path = "testdata/graphs/joint_net.json";
  const Source rounded = LoadSource(path, With(Optimizer::kAdam8Bit, false)).value();
  REQUIRE(rounded.warnings.size() == 1);
  CHECK(rounded.warnings.front().find("is estimated for one float32 tensor") != std::string::npos);
  // 16,384 elements in 64 blocks.
  CHECK(MakePlan(rounded, rounded.request, {}).value().figures.optimizer_state ==
        Bytes(2 * 16'384 + 8 * 64));
  const Result<Source> copied = LoadSource(path, With(Optimizer::kAdam, true));
  REQUIRE_FALSE(copied.ok());
  CHECK(copied.error().code == ErrorCode::kUsage);
  CHECK(copied.error().remedy.settings.at(0).name == "master_weights");
}

TEST_CASE("optimizer: a graph file that does not say what is trained has no limit on the state") {
  for (const std::string name : {"joint_small.json", "chain.json"}) {
    CAPTURE(name);
    const std::string path = "testdata/graphs/" + name;
    PlanRequest request = With(Optimizer::kAdamW, false);
    CHECK(LoadSource(path, request).value().warnings.empty());
    for (Budget PlanRequest::*const limit : {&PlanRequest::memory, &PlanRequest::total_budget}) {
      PlanRequest limited = request;
      limited.*limit = Budget::Of(Bytes(1 << 30));
      const Result<Source> refused = LoadSource(path, limited);
      REQUIRE_FALSE(refused.ok());
      CHECK(refused.error().code == ErrorCode::kUsage);
      limited.implied = {"optimizer"};
      const Source source = LoadSource(path, limited).value();
      REQUIRE(source.warnings.size() == 1);
      CHECK(source.warnings.front().find("so the state of adamw is unknown and counts as 0 B") !=
            std::string::npos);
      limited.optimizer = Optimizer::kSgd;
      CHECK(LoadSource(path, limited).value().warnings.empty());
    }
  }
}

TEST_CASE("optimizer: gradients that are results like any other have the state that is listed") {
  const TemporaryFolder folder;
  const std::string path = folder / "step.json";
  // As ckplan.torch writes it: the gradient "dw" of "w" is a result of the step.
  std::ofstream(path) << R"({"kind": "joint", "optimized_tensors": [[256, 4, 1]],
    "values": [{"id": 0, "name": "w", "bytes": 1024, "kind": "constant"},
               {"id": 1, "name": "h", "bytes": 64, "kind": "value"},
               {"id": 2, "name": "dw", "bytes": 1024, "kind": "value"}],
    "ops": [{"id": 0, "reads": [0], "writes": [1], "cost": 1},
            {"id": 1, "phase": "backward", "reads": [1, 0], "writes": [2], "cost": 1}],
    "results": [2]})";
  PlanRequest request = With(Optimizer::kAdamW, false);
  request.memory = Budget::Of(Bytes(int64_t{1} << 30));
  const Source source = LoadSource(path, request).value();
  CHECK(source.warnings.empty());
  const Plan plan = MakePlan(source, request, {}).value();
  CHECK(plan.figures.optimizer_state == Bytes(2048));
  CHECK(FindPlanFileFaults({source, plan, path}).empty());
  const Accounting account = AccountForPlan(source, plan);
  // The weight, its two values of state, and at the optimizer's step its gradient and a square
  // root.
  CHECK(account.tensor_bytes() == Bytes(1024 + 2048 + 1024 + 1024));
}

TEST_CASE("optimizer: master weights of a model in float32 change nothing, with a warning") {
  PlanRequest request = With(Optimizer::kAdam, true);
  request.dims = {{"N", 8}};
  const Source source = LoadSource(kTinyModel, request).value();
  REQUIRE(source.warnings.size() == 1);
  CHECK(source.warnings.front() ==
        "tiny_mlp.onnx: no trained parameter is stored in 16 bits, so master weights change "
        "nothing");
  CHECK(MakePlan(source, request, {}).value().figures.optimizer_state ==
        2 * source.graph.optimized().bytes);
}

}  // namespace
}  // namespace ckplan
