#include "cli/ckexec/plan_again.h"

#include <doctest/doctest.h>

namespace ckplan {

TEST_CASE("plan again: the command asks for all that the plan was asked for") {
  Plan plan;
  plan.model.dims = {{"N", 2}, {"T", 8}};
  plan.model.input_shapes = {{"x", {2, 3, 64, 64}}};
  plan.request.algorithm = "exact-dp";
  plan.request.cost_model = "flops:h100-80g";
  ExecOptions options;
  options.model = "net.onnx";
  CHECK(PlanAgainCommand(plan, 64, options) ==
        "ckplan net.onnx -D N=2 -D T=8 --input-shape x=2,3,64,64 --algo exact-dp "
        "--cost flops:h100-80g --align 64 -o plan.json");
  plan.model = {};
  plan.request.budget = Bytes(1000);
  plan.request.cost_model = "file";
  plan.request.objective = Objective::kMemory;
  plan.request.optimizer = Optimizer::kAdam;
  plan.request.granularity = Granularity::kLayer;
  plan.request.activation_type = ActivationType::kBFloat16;
  plan.request.uses_liveness = false;
  options.cost = "file:costs.json";
  options.plan = "old.json";
  CHECK(PlanAgainCommand(plan, 8, options) ==
        "ckplan net.onnx --algo exact-dp --budget 1000 --cost file:costs.json --objective memory "
        "--optimizer adam --granularity layer --activation-type bf16 --no-liveness --align 8 "
        "-o old.json");
  plan.request.budget = std::nullopt;
  plan.request.paper_budget = Bytes(7);
  CHECK(PlanAgainCommand(plan, 8, options).find(" --paper-budget 7 ") != std::string::npos);
}

}  // namespace ckplan
