#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "lib/files/input/load_source.h"
#include "lib/files/input/plan_file.h"
#include "lib/planning/plan/accounting.h"
#include "lib/planning/plan/assemble.h"
#include "lib/planning/planner/model_form.h"
#include "lib/planning/planner/module_plan.h"
#include "lib/planning/planner/planner.h"
#include "lib/planning/planner/registry.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

PlanRequest Arriving() {
  PlanRequest request;
  request.gradients = ParameterGradients::kArriving;
  request.effort = SearchEffort::kQuick;
  return request;
}

Bytes Total(const PlanFigures& figures) { return figures.peak + TotalConstants(figures); }

}  // namespace

TEST_CASE("arriving gradients: a model's step counts each from the node that makes it on") {
  const std::string path = "testdata/models/squeezenet1_1.onnx";
  PlanRequest request = Arriving();
  request.dims = {{"N", 2}};
  const Source arriving = LoadSource(path, request).value();
  request.gradients = ParameterGradients::kConstant;
  const Source constant = LoadSource(path, request).value();
  REQUIRE(arriving.joint);
  CHECK(arriving.is_model);
  CHECK(arriving.joint->ops().size() == 2 * constant.graph.nodes().size() + 1);
  const ConstantMemory& together = constant.graph.constants();
  CHECK(arriving.step().optimized().bytes == together.parameter_gradients);
  CHECK_FALSE(arriving.step().optimized().tensors.empty());
  CHECK(arriving.step().optimized().tensors == constant.graph.optimized().tensors);
  // Each parameter is trained by a node.
  CHECK(ConstantsOf(*arriving.joint).parameter_gradients == Bytes(0));
  CHECK(ConstantsOf(*arriving.joint).parameters == together.parameters);
  CHECK(ConstantsOf(*arriving.joint).inputs == together.inputs);
  const Bytes gradients = together.parameter_gradients;
  CHECK(KeepAllPeak(arriving.step()) >= std::max(KeepAllPeak(constant.step()), gradients));
  CHECK(KeepAllPeak(arriving.step()) < KeepAllPeak(constant.step()) + gradients);

  for (const std::string_view algorithm : {"keep-all", "best"}) {
    CAPTURE(std::string(algorithm));
    PlanRequest plan_request = Arriving();
    plan_request.algorithm = algorithm;
    plan_request.optimizer = Optimizer::kAdam;
    const Bytes total = KeepAllPeak(constant.step()) + TotalConstants(together, 2 * gradients);
    plan_request.total_budget = Budget::Of(total - Bytes(1));
    const Plan plan = MakePlan(arriving, plan_request, {}).value();
    CHECK(Total(plan.figures) < total);
    CHECK(plan.figures.optimizer_state == 2 * gradients);
    CHECK(plan.request.gradients == ParameterGradients::kArriving);
    CHECK(FindPlanFileFaults({arriving, plan, path}).empty());
    Plan damaged = plan;
    damaged.figures.optimizer_state = Bytes(0);
    CHECK_FALSE(FindPlanFileFaults({arriving, damaged, path}).empty());
  }
}

TEST_CASE("arriving gradients: what training needs has them, whether or not the peak does") {
  struct Row {
    std::string_view path;
    int64_t size;
    std::string_view freeze;
  };
  // The second trains its embedding as its last layer, too.
  for (const Row& row :
       {Row{"models/squeezenet1_1.onnx", 2, ""}, Row{"models/gpt2_small.onnx", 1, ""},
        Row{"models/resnet18.onnx", 1, "layer4*"}, Row{"graphs/joint_net.json", 0, ""}}) {
    CAPTURE(std::string(row.path));
    const std::string path = fmt::format("testdata/{}", row.path);
    PlanRequest request;
    if (row.size > 0) request.dims = {{"N", row.size}};
    if (!row.freeze.empty()) request.freeze = {std::string(row.freeze)};
    const Source source = LoadSource(path, request).value();
    const Accounting own = AccountForKeepAll(source);
    request.gradients = ParameterGradients::kArriving;
    const Source arriving = LoadSource(path, request).value();
    const Accounting in_peak = AccountForKeepAll(arriving);
    // The expansion counts some temporaries as workspaces.
    CHECK(own.tensor_bytes() + own.outside.front().bytes ==
          in_peak.tensor_bytes() + in_peak.outside.front().bytes);
    CHECK(own.need() == in_peak.need());
    request.gradients = ParameterGradients::kConstant;
    const Source constant = LoadSource(path, request).value();
    CHECK(own.tensor_bytes() < AccountForKeepAll(constant).tensor_bytes());
    CHECK(ArrivingGradients(source.step(), source.request) ==
          source.step().constants().parameter_gradients);
  }
}

TEST_CASE("arriving gradients: a parameter that several nodes train arrives with the first") {
  // The embedding of tiny GPTs and BERTs is their last layer as well.
  PlanRequest request = Arriving();
  const std::string path = "testdata/models/gpt2_small.onnx";
  request.dims = {{"N", 1}};
  const Source source = LoadSource(path, request).value();
  REQUIRE(source.joint);
  Bytes arriving;
  for (const Value& value : source.joint->values()) {
    if (value.kind == ValueKind::kArrivingGradient) arriving += value.bytes;
  }
  CHECK(arriving == source.step().optimized().bytes);
}

TEST_CASE("arriving gradients: of joint graphs as well, of forward graph files not") {
  const Source joint = LoadSource("testdata/graphs/joint_net.json", Arriving()).value();
  REQUIRE(joint.joint);
  CHECK(joint.step().optimized().bytes == Bytes(65536));
  // d_h, the loss and the gradient itself.
  CHECK(KeepAllPeak(joint.step()) == Bytes(16384 + 4 + 65536));
  const Result<Source> forward = LoadSource("testdata/graphs/net.json", Arriving());
  REQUIRE_FALSE(forward.ok());
  CHECK(forward.error().code == ErrorCode::kUsage);
  CHECK(forward.error().message.starts_with(
      "arriving gradients need an ONNX model or a joint graph"));
}

TEST_CASE("arriving gradients: every algorithm plans a model's step, and best is no worse") {
  int plans = 0;
  for (const std::string_view name : {"tiny_mlp", "squeezenet1_1", "resnet18"}) {
    CAPTURE(std::string(name));
    const std::string path = fmt::format("testdata/models/{}.onnx", name);
    PlanRequest request = Arriving();
    request.dims = {{"N", 2}};
    const Source source = LoadSource(path, request).value();
    const Bytes budget(KeepAllPeak(source.step()).count() * 85 / 100);
    request.budget = Budget::Of(budget);
    request.algorithm = kBestAlgorithm;
    const Result<Plan> best = MakePlan(source, request, {});
    for (const SolverInfo* info : ListedAlgorithms()) {
      if (info->name == kGivenAlgorithm) continue;
      if (info->prepare_offload != nullptr) continue;  // It needs a link.
      CAPTURE(std::string(info->name));
      REQUIRE(CanPlan(*info, source.step()));
      request.algorithm = info->name;
      const Result<Plan> plan = MakePlan(source, request, {});
      if (!plan.ok()) {
        const bool is_too_large = plan.error().code == ErrorCode::kUnsupported;
        CHECK((is_too_large || plan.error().code == ErrorCode::kInfeasible));
        continue;
      }
      ++plans;
      CHECK(plan->figures.peak <= budget);
      CHECK(FindPlanFileFaults({source, *plan, path}) == std::vector<std::string>());
      REQUIRE(best.ok());
      CHECK(best->figures.overhead <= plan->figures.overhead);
    }
  }
  CHECK(plans > 20);
}

TEST_CASE("arriving gradients: an algorithm's own budget, objective, knob and layers are taken") {
  const std::string path = "testdata/models/squeezenet1_1.onnx";
  PlanRequest request = Arriving();
  request.dims = {{"N", 2}};
  const Source source = LoadSource(path, request).value();
  const auto plan_by = [&](std::string_view algorithm, auto ask) {
    PlanRequest asked = request;
    asked.algorithm = algorithm;
    ask(&asked);
    const Plan plan = MakePlan(source, asked, {}).value();
    CHECK(FindPlanFileFaults({source, plan, path}) == std::vector<std::string>());
    return plan;
  };
  const Plan by_time = plan_by("approx-dp", [](PlanRequest* asked) {
    asked->paper_budget = {Budget::Kind::kMin, Bytes(0), 0};
    asked->objective = Objective::kTime;
  });
  const Plan by_memory = plan_by("approx-dp", [](PlanRequest* asked) {
    asked->paper_budget = {Budget::Kind::kMin, Bytes(0), 0};
    asked->objective = Objective::kMemory;
  });
  CHECK(by_memory.request.objective == Objective::kMemory);
  CHECK(by_memory.figures.paper.overhead >= by_time.figures.paper.overhead);
  const Plan cut = plan_by("chen-sqrt", [](PlanRequest* asked) {
    asked->setting = KnobSetting{"segments", 3};
  });
  CHECK(cut.figures.setting == KnobSetting{"segments", 3});
  const Plan least = plan_by("exact-dp", [](PlanRequest* asked) {
    asked->budget = {Budget::Kind::kMin, Bytes(0), 0};
    asked->granularity = Granularity::kLayer;
  });
  CHECK(least.figures.peak < KeepAllPeak(source.step()));
  const Plan kept =
      plan_by("recompute-all", [](PlanRequest* asked) { asked->keep = NamePatterns({"*"}); });
  CHECK(kept.figures.overhead == Cost(0));

  Plan damaged = cut;
  damaged.figures.setting->value = 4000;
  CHECK_FALSE(FindPlanFileFaults({source, damaged, path}).empty());
}

TEST_CASE("arriving gradients: the plan of a step stands for one of the model's forward graph") {
  const std::string path = "testdata/models/resnet18.modules.onnx";
  PlanRequest request = Arriving();
  request.dims = {{"N", 2}};
  const Source source = LoadSource(path, request).value();
  request.algorithm = "chen-sqrt";
  const Plan plan = MakePlan(source, request, {}).value();
  const Plan form = ToModelForm(source, plan);
  CHECK(Simulator(source.graph).Run(form.schedule)->overhead == plan.figures.overhead);
  CHECK(form.figures == plan.figures);
  for (const NodeId id : source.graph.nodes().ids()) {
    // The step has the forward runs of a node under the node's own number.
    CHECK(form.decisions[id].recompute_count == plan.decisions[id].recompute_count);
    CHECK(form.labels[id].name == plan.labels[id].name);
  }
  const ModulePlan modules = FindModulePlan(source.step(), source.modules, form).value();
  CHECK(modules.budget == plan.figures.peak);
  CHECK_FALSE(modules.modules.empty());
  // What the wrapped modules need is measured with the gradients that arrive.
  CHECK(modules.peak > FindModulePlan(source.graph, source.modules, form)->peak);
}

}  // namespace ckplan
