#include "lib/planning/plan/request_fields.h"

#include <doctest/doctest.h>

#include <functional>
#include <set>

#include "lib/testing/plans/requests.h"

namespace ckplan {
namespace {

using Set = std::function<void(PlanRequest*)>;

TEST_CASE("request: each difference in how plans were made is reported in a sentence") {
  const struct {
    Set set;
    std::string sentence;
  } kRows[] = {
      {[](PlanRequest* r) {
         r->dims = {{"N", 64}};
       },
       "the plans use different dimensions (none and N=64), which alone changes their bytes and "
       "times"},
      {[](PlanRequest* r) {
         r->input_shapes = {{"x", {2, 3}}};
       },
       "the plans use different input shapes (none and x=2,3), which alone changes their bytes and "
       "times"},
      {[](PlanRequest* r) { r->batch = 8; },
       "the plans use different batch sizes (none and 8), which alone changes their bytes and "
       "times"},
      {[](PlanRequest* r) { r->workspaces = "file"; },
       "the plans use different workspaces (none and file), which alone changes their peaks"},
      {[](PlanRequest* r) { r->cost_model = "unit"; },
       "the plans use different cost models (\"flops:a100-40g\" and \"unit\"), so their times are "
       "not comparable"},
      {[](PlanRequest* r) { r->autograd = Autograd::kTorch; },
       "the plans use different autograd models (minimal and torch), which alone changes their "
       "bytes"},
      {[](PlanRequest* r) { r->activation_type = ActivationType::kBFloat16; },
       "the plans use different activation types (the model's and bf16), which alone changes their "
       "bytes and times"},
      {[](PlanRequest* r) { r->fused = FusedOperators::kAttention; },
       "the plans use different fused operators (none and attention), which alone changes their "
       "bytes and times"},
      {[](PlanRequest* r) { r->restored = RestoredOperators::kCaptured; },
       "the plans use different restored operators (none and PyTorch's operations), which alone "
       "changes their bytes and times"},
      {[](PlanRequest* r) { r->rounding = Rounding::kNoGradient; },
       "the plans use different gradients of rounding (straight-through and no-gradient), which "
       "alone changes their bytes and times"},
      {[](PlanRequest* r) { r->gradients = ParameterGradients::kArriving; },
       "the plans use different accounting of parameter gradients (with the constants and once "
       "computed), which alone changes their peaks or needs"},
      {[](PlanRequest* r) { r->gradients = ParameterGradients::kConstant; },
       "the plans use different accounting of parameter gradients (with the constants and "
       "throughout the step), which alone changes their peaks or needs"},
      {[](PlanRequest* r) { r->offload = ParseLink("pcie4").value(); },
       "the plans use different links to the host (none and pcie4:26.775/26.775), which alone "
       "changes their times"},
      {[](PlanRequest* r) { r->outputs = {"logits"}; },
       "the plans use different outputs (none and logits), which alone changes their bytes and "
       "times"},
      {[](PlanRequest* r) { r->weights = {"*.weight"}; },
       "the plans use different inputs as parameters (none and *.weight), which alone changes "
       "their bytes"},
      {[](PlanRequest* r) { r->set_inputs = {"use_cache=1"}; },
       "the plans use different input values (none and use_cache=1), which alone changes their "
       "bytes and times"},
      {[](PlanRequest* r) { r->op_shapes = {"acme::Norm=like:0"}; },
       "the plans use different operator descriptions (none and acme::Norm=like:0), which alone "
       "changes their bytes and times"},
      {[](PlanRequest* r) {
         r->freeze = {"*.weight", "!*lora*"};
       },
       "the plans use different frozen parameters (none and *.weight !*lora*), which alone changes "
       "their bytes and times"},
      {[](PlanRequest* r) {
         r->sharding = {ShardingSystem::kZero1, 8};
       },
       "the plans use different sharding (none and zero1:8), which alone changes their peaks with "
       "constants"},
      {[](PlanRequest* r) {
         r->pipeline = {4, 1};
       },
       "the plans use different pipeline stages (none and 4/1), which alone changes their bytes "
       "and times"},
      {[](PlanRequest* r) { r->micro_batches = 8; },
       "the plans use different numbers of micro-batches (none and 8), which alone changes their "
       "bytes"},
      {[](PlanRequest* r) { r->schedule = PipelineSchedule::kGPipe; },
       "the plans use different pipeline schedules (1f1b and gpipe), which alone changes their "
       "bytes"},
      {[](PlanRequest* r) {
         r->stage_cuts = {"a", "b"};
       },
       "the plans use different stage cuts (none and a b), which alone changes their bytes and "
       "times"},
      {[](PlanRequest* r) { r->optimizer = Optimizer::kAdam; },
       "the plans use different optimizers (sgd and adam), which alone changes their peaks with "
       "constants"},
      {[](PlanRequest* r) { r->has_master_weights = true; },
       "the plans use different optimizer states (without and with master weights), which alone "
       "changes their peaks with constants"},
      {[](PlanRequest* r) { r->align_bytes = 512; },
       "the plans use different buffer alignments (1 and 512), which alone changes their bytes"},
      {[](PlanRequest* r) { r->uses_liveness = false; },
       "the plans use different rules for releasing tensors (after their last read and by "
       "segment), which alone changes their bytes"},
      {[](PlanRequest* r) { r->backward = BackwardSteps::kByInput; },
       "the plans use different backward steps (by default and by input), which alone changes "
       "their bytes"},
  };
  PlanRequest older;
  older.cost_model = "flops:a100-40g";
  for (const auto& row : kRows) {
    PlanRequest newer = older;
    row.set(&newer);
    CAPTURE(row.sentence);
    CHECK(DifferencesOf(older, newer) == std::vector<std::string>{row.sentence});
    CHECK(HaveSameCosts(older, newer) == (newer.cost_model == older.cost_model));
  }
}

TEST_CASE(
    "request: plans are compared for their algorithm, objective, granularity, effort, order, "
    "budgets, knob and constraints") {
  PlanRequest newer;
  newer.algorithm = "exact-dp";
  newer.objective = Objective::kMemory;
  newer.granularity = Granularity::kLayer;
  newer.effort = SearchEffort::kQuick;
  newer.order = StepOrder::kFree;
  newer.budget = Budget::Of(Bytes(9));
  newer.paper_budget = Budget::Of(Bytes(7));
  newer.setting = {"B", 5};
  newer.keep = newer.recompute = newer.never_rerun = {"op:Relu"};
  CHECK(DifferencesOf(PlanRequest(), newer).empty());
}

TEST_CASE("request: every difference is named, whether figures compare or not") {
  PlanRequest older, newer;
  CHECK(ListDifferences(older, newer).empty());
  older.budget = {Budget::Kind::kPercent, Bytes(0), 60};
  newer.algorithm = "exact-dp";
  newer.budget = Budget::Of(Bytes(2048));
  newer.optimizer = Optimizer::kAdam;
  newer.uses_liveness = false;
  newer.decisions = Decisions{Decisions::Form::kKept, {{{"a", -1}}}, {}, {}};
  std::vector<std::string> texts;
  for (const RequestDifference& one : ListDifferences(older, newer)) {
    texts.push_back(std::string(one.field) + ": " + one.older + " -> " + one.newer + "; " +
                    one.spoken_older + " -> " + one.spoken_newer);
  }
  CHECK(texts == std::vector<std::string>{
                     "algorithm: best -> exact-dp; best -> exact-dp",
                     "budget: 60% -> 2048; 60% -> 2.00 KiB (2048 bytes)",
                     "decisions:  -> given; none -> given", "optimizer: sgd -> adam; sgd -> adam",
                     "liveness: yes -> no; after their last read -> by segment"});
  older = newer;
  newer.decisions->sets[0][0].name = "b";
  const auto other = ListDifferences(older, newer);
  REQUIRE(other.size() == 1);
  CHECK(other[0].newer == "others");
}

TEST_CASE("request: every field of the table that differs is reported") {
  for (const RequestField& field : RequestFields()) {
    CAPTURE(std::string(field.name));
    const PlanRequest full = FullRequest();
    PlanRequest one;
    CopyField(field, full, &one);
    const auto differences = ListDifferences(PlanRequest(), one);
    REQUIRE(differences.size() == 1);
    CHECK(differences[0].field == field.name);
    CHECK(differences[0].older != differences[0].newer);
    CHECK(differences[0].spoken_older != differences[0].spoken_newer);
  }
}

TEST_CASE("request: the table has each field once, and copies and compares what is in it") {
  const PlanRequest full = FullRequest();
  std::set<std::string_view> names;
  PlanRequest copy;
  for (const RequestField& field : RequestFields()) {
    CAPTURE(std::string(field.name));
    CHECK(names.insert(field.name).second);
    CHECK(&FieldOf(field.name) == &field);
    CHECK_FALSE(IsDefault(field, full));
    CHECK(IsDefault(field, copy));
    CopyField(field, full, &copy);
  }
  CHECK(copy == full);
}

TEST_CASE("request: values are said as people type them") {
  PlanRequest request;
  request.budget = {Budget::Kind::kPercent, Bytes(0), 62.5};
  request.total_budget = {Budget::Kind::kMin, Bytes(0), 0};
  request.paper_budget = Budget::Of(Bytes(1));
  request.setting = {"segments", 5};
  request.input_shapes = {{"x", {2, 3}}};
  request.freeze = {"w", "!v"};
  request.sharding = {ShardingSystem::kFsdp, 8};
  request.pipeline = {4, 1};
  request.stage_cuts = {"a", "b"};
  request.optimizer = Optimizer::kMomentum;
  request.offload = ParseLink("pcie5:50/49.5,half").value();
  request.host_budget = Bytes(64);
  const auto texts = [&](std::string_view field) { return TextsOf(FieldOf(field), request); };
  CHECK(texts("budget") == std::vector<std::string>{"62.5%"});
  CHECK(texts("total_budget") == std::vector<std::string>{"min"});
  request.total_budget = {Budget::Kind::kBalanced, Bytes(0), 0};
  CHECK(texts("total_budget") == std::vector<std::string>{"balanced"});
  CHECK(texts("paper_budget") == std::vector<std::string>{"1"});
  CHECK(texts("setting") == std::vector<std::string>{"segments=5"});
  CHECK(texts("input_shapes") == std::vector<std::string>{"x=2,3"});
  CHECK(texts("freeze") == std::vector<std::string>{"w", "!v"});
  CHECK(texts("sharding") == std::vector<std::string>{"fsdp:8"});
  CHECK(texts("pipeline") == std::vector<std::string>{"4/1"});
  CHECK(texts("stage_cuts") == std::vector<std::string>{"a", "b"});
  CHECK(texts("optimizer") == std::vector<std::string>{"momentum"});
  CHECK(texts("offload") == std::vector<std::string>{"pcie5:50/49.5,half"});
  CHECK(texts("host_memory") == std::vector<std::string>{"64"});
  CHECK(TextsOf(FieldOf("budget"), PlanRequest()).empty());
}

}  // namespace
}  // namespace ckplan
