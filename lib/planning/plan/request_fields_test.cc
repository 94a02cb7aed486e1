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
       "the plans are for the dimensions none and N=64; that alone changes their bytes and times"},
      {[](PlanRequest* r) {
         r->input_shapes = {{"x", {2, 3}}};
       },
       "the plans are for the input shapes none and x=2,3; that alone changes their bytes and "
       "times"},
      {[](PlanRequest* r) { r->batch = 8; },
       "the plans are for the batches none and 8; that alone changes their bytes and times"},
      {[](PlanRequest* r) { r->workspaces = "file"; },
       "the plans' workspaces are from none and file; that alone changes their peaks"},
      {[](PlanRequest* r) { r->cost_model = "unit"; },
       "the plans' costs are by \"flops:a100-40g\" and \"unit\"; their times do not compare"},
      {[](PlanRequest* r) { r->autograd = Autograd::kTorch; },
       "the plans are for minimal and for torch autograd; that alone changes their bytes"},
      {[](PlanRequest* r) { r->activation_type = ActivationType::kBFloat16; },
       "the plans store activations as the model says and as bf16; that alone changes their bytes "
       "and times"},
      {[](PlanRequest* r) { r->fused = FusedOperators::kAttention; },
       "the plans read each operator apart and attention as one operator; that alone changes their "
       "bytes and times"},
      {[](PlanRequest* r) { r->restored = RestoredOperators::kCaptured; },
       "the plans read operators as the file has them and PyTorch's operations as one; that alone "
       "changes their bytes and times"},
      {[](PlanRequest* r) { r->rounding = Rounding::kNoGradient; },
       "the plans take rounding as straight-through and as no-gradient; that alone changes their "
       "bytes and times"},
      {[](PlanRequest* r) { r->gradients = ParameterGradients::kArriving; },
       "the plans count gradients of parameters with the constants and as they arrive; that alone "
       "changes their peaks or needs"},
      {[](PlanRequest* r) { r->gradients = ParameterGradients::kConstant; },
       "the plans count gradients of parameters with the constants and throughout the step; that "
       "alone changes their peaks or needs"},
      {[](PlanRequest* r) { r->offload = ParseLink("pcie4").value(); },
       "the plans' links to the host are none and pcie4:26.775/26.775; that alone changes their "
       "times"},
      {[](PlanRequest* r) { r->outputs = {"logits"}; },
       "the plans end at none and at logits; that alone changes their bytes and times"},
      {[](PlanRequest* r) { r->weights = {"*.weight"}; },
       "the plans take none and *.weight for parameters; that alone changes their bytes"},
      {[](PlanRequest* r) { r->set_inputs = {"use_cache=1"}; },
       "the plans set the inputs none and use_cache=1; that alone changes their bytes and times"},
      {[](PlanRequest* r) { r->op_shapes = {"acme::Norm=like:0"}; },
       "the plans describe operators as none and as acme::Norm=like:0; that alone changes their "
       "bytes and times"},
      {[](PlanRequest* r) {
         r->freeze = {"*.weight", "!*lora*"};
       },
       "the plans freeze the parameters none and *.weight !*lora*; that alone changes their bytes "
       "and times"},
      {[](PlanRequest* r) {
         r->sharding = {ShardingSystem::kZero1, 8};
       },
       "the plans divide constants among devices as none and as zero1:8; that alone changes their "
       "peaks with constants"},
      {[](PlanRequest* r) {
         r->pipeline = {4, 1};
       },
       "the plans are for the stages none and 4/1; that alone changes their bytes and times"},
      {[](PlanRequest* r) { r->micro_batches = 8; },
       "the plans' numbers of micro-batches are none and 8; that alone changes their bytes"},
      {[](PlanRequest* r) { r->schedule = PipelineSchedule::kGPipe; },
       "the plans' micro-batches follow the schedules 1f1b and gpipe; that alone changes their "
       "bytes"},
      {[](PlanRequest* r) {
         r->stage_cuts = {"a", "b"};
       },
       "the plans' stages begin at none and at a b; that alone changes their bytes and times"},
      {[](PlanRequest* r) { r->optimizer = Optimizer::kAdam; },
       "the plans count the state of the optimizers sgd and adam; that alone changes their peaks "
       "with constants"},
      {[](PlanRequest* r) { r->has_master_weights = true; },
       "the plans count the state of the optimizer without and with master weights; "
       "that alone changes their peaks with constants"},
      {[](PlanRequest* r) { r->align_bytes = 512; },
       "the plans round buffers up to multiples of 1 and of 512 bytes; that alone changes their "
       "bytes"},
      {[](PlanRequest* r) { r->uses_liveness = false; },
       "the plans release tensors as soon as nothing reads them and a segment at a time; that "
       "alone changes their bytes"},
      {[](PlanRequest* r) { r->backward = BackwardSteps::kByInput; },
       "the plans make gradients by default and by input; that alone changes their bytes"},
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
  CHECK(EachDifference(older, newer).empty());
  older.budget = {Budget::Kind::kPercent, Bytes(0), 60};
  newer.algorithm = "exact-dp";
  newer.budget = Budget::Of(Bytes(2048));
  newer.optimizer = Optimizer::kAdam;
  newer.uses_liveness = false;
  newer.decisions = Decisions{Decisions::Form::kKept, {{{"a", -1}}}, {}, {}};
  std::vector<std::string> texts;
  for (const RequestDifference& one : EachDifference(older, newer)) {
    texts.push_back(std::string(one.field) + ": " + one.older + " -> " + one.newer + "; " +
                    one.spoken_older + " -> " + one.spoken_newer);
  }
  CHECK(texts == std::vector<std::string>{
                     "algorithm: best -> exact-dp; best -> exact-dp",
                     "budget: 60% -> 2048; 60% -> 2.00 KiB (2048 bytes)",
                     "decisions:  -> given; none -> given", "optimizer: sgd -> adam; sgd -> adam",
                     "liveness: yes -> no; as soon as nothing reads them -> a segment at a time"});
  older = newer;
  newer.decisions->sets[0][0].name = "b";
  const auto other = EachDifference(older, newer);
  REQUIRE(other.size() == 1);
  CHECK(other[0].newer == "others");
}

TEST_CASE("request: every field of the table that differs is reported") {
  for (const RequestField& field : RequestFields()) {
    CAPTURE(std::string(field.name));
    const PlanRequest full = FullRequest();
    PlanRequest one;
    CopyField(field, full, &one);
    const auto differences = EachDifference(PlanRequest(), one);
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
