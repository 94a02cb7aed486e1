#include "cli/ckexec/session.h"

#include <doctest/doctest.h>

namespace ckplan {

TEST_CASE("plan again: the command repeats everything that the plan was requested with") {
  Plan plan;
  plan.request.dims = {{"N", 2}, {"T", 8}};
  plan.request.input_shapes = {{"x", {2, 3, 64, 64}}};
  plan.request.algorithm = "exact-dp";
  plan.request.cost_model = "flops:h100-80g";
  ExecOptions options;
  options.model = "net.onnx";
  CHECK(ReplanCommand(plan, 64, options) ==
        "ckplan net.onnx -D N=2 -D T=8 --input-shape x=2,3,64,64 --algo exact-dp "
        "--optimizer sgd --cost flops:h100-80g --autograd minimal --no-restore --align 64 -o "
        "plan.json");
  plan.request.dims.clear();
  plan.request.input_shapes.clear();
  plan.request.budget = Budget::Of(Bytes(1000));
  plan.request.cost_model = "file";
  plan.request.objective = Objective::kMemory;
  plan.request.optimizer = Optimizer::kAdam;
  plan.request.granularity = Granularity::kLayer;
  plan.request.activation_type = ActivationType::kBFloat16;
  plan.request.uses_liveness = false;
  CommandLine line("ckexec run", "", "");
  options.request.Add(line, "cost_model");
  REQUIRE(line.Parse({"--cost", "file:costs.json"}).ok());
  options.plan = "old.json";
  CHECK(ReplanCommand(plan, 8, options) ==
        "ckplan net.onnx --algo exact-dp --budget 1000 --objective memory --granularity layer "
        "--optimizer adam --no-liveness --cost file:costs.json --autograd minimal "
        "--activation-type bf16 --no-restore --align 8 -o old.json");
  plan.request.budget = {};
  plan.request.paper_budget = Budget::Of(Bytes(7));
  CHECK(ReplanCommand(plan, 8, options).find(" --paper-budget 7 ") != std::string::npos);
}

TEST_CASE("plan again: a plan made from decisions is itself the file of decisions") {
  Plan plan;
  plan.request.algorithm = "given";
  plan.request.decisions = Decisions{Decisions::Form::kKept, {{{"a", -1}}}, {}, {}};
  ExecOptions options;
  options.model = "net.onnx";
  options.plan = "mine.json";
  CHECK(ReplanCommand(plan, 64, options) ==
        "ckplan net.onnx --algo given --optimizer sgd --autograd minimal --no-restore --align 64 "
        "--decisions mine.json "
        "-o new-plan.json");
}

}  // namespace ckplan
