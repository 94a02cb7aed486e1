#include "cli/common/request_flags.h"

#include <doctest/doctest.h>

#include "lib/planning/plan/request_fields.h"
#include "lib/testing/plans/requests.h"

namespace ckplan {
namespace {

struct Typed {
  RequestFlags flags;
  Result<PlanRequest> request;
};

Typed ReadTyped(std::vector<std::string> arguments) {
  CommandLine line("ckplan plan", "", "");
  RequestFlags flags;
  flags.Add(line, RequestFlags::Group::kAlgorithm);
  flags.Add(line, RequestFlags::Group::kPlanning);
  flags.Add(line, RequestFlags::Group::kReading);
  const auto outcome = line.Parse(std::move(arguments));
  if (!outcome.ok()) return {flags, outcome.error()};
  Result<PlanRequest> request = flags.Read();
  return {std::move(flags), std::move(request)};
}

// What is meant where nothing is typed.
PlanRequest CapturedRequest() {
  PlanRequest request;
  request.autograd = Autograd::kTorchCuda;
  request.fused = FusedOperators::kCaptured;
  request.restored = RestoredOperators::kCaptured;
  request.optimizer = Optimizer::kAdamW;
  request.implied = {"autograd", "fused", "optimizer", "restored"};
  return request;
}

TEST_CASE("request flags: nothing typed is the default request") {
  CHECK(*ReadTyped({}).request == CapturedRequest());
}

TEST_CASE("request flags: a word that is typed is not implied, even if it is the default") {
  const PlanRequest typed = *ReadTyped({"--autograd", "torch-cuda"}).request;
  CHECK(typed.autograd == Autograd::kTorchCuda);
  CHECK(typed.implied == std::set<std::string>{"fused", "optimizer", "restored"});
  const PlanRequest one_by_one = *ReadTyped({"--no-restore", "--autograd", "torch-cpu"}).request;
  CHECK(one_by_one.autograd == Autograd::kTorch);
  CHECK(one_by_one.fused == FusedOperators::kNone);
  CHECK(one_by_one.restored == RestoredOperators::kNone);
  CHECK(FlagsFor(one_by_one) == " --algo best --autograd torch-cpu --no-restore");
  const PlanRequest attention = *ReadTyped({"--no-restore", "--fuse", "attention"}).request;
  CHECK(attention.fused == FusedOperators::kAttention);
  CHECK(FlagsFor(attention) == " --algo best --fuse attention --restore none");
  CHECK(*ReadTyped({"--autograd", "torch"}).request ==
        *ReadTyped({"--autograd", "torch-cpu"}).request);
}

TEST_CASE("request flags: every field is read, and written as the same flags") {
  const std::vector<std::string> kArguments = {"-D",
                                               "N=2",
                                               "-D",
                                               "T=8",
                                               "--batch",
                                               "8",
                                               "--input-shape",
                                               "x=2,3",
                                               "--algo",
                                               "exact-dp",
                                               "--effort",
                                               "thorough",
                                               "--order",
                                               "free",
                                               "--budget",
                                               "60%",
                                               "--keep",
                                               "a",
                                               "--keep",
                                               "b",
                                               "--recompute",
                                               "op:Relu",
                                               "--never-rerun",
                                               "op:TopK",
                                               "--knob",
                                               "B=1048576",
                                               "--objective",
                                               "memory",
                                               "--granularity",
                                               "layer",
                                               "--optimizer",
                                               "adam",
                                               "--no-liveness",
                                               "--cost",
                                               "file:c.json",
                                               "--autograd",
                                               "torch-cpu",
                                               "--activation-type",
                                               "bf16",
                                               "--fuse",
                                               "attention",
                                               "--restore",
                                               "none",
                                               "--rounding",
                                               "no-gradient",
                                               "--gradients",
                                               "arriving",
                                               "--outputs",
                                               "logits",
                                               "--outputs",
                                               "head",
                                               "--weights",
                                               "w1",
                                               "--set",
                                               "n=2",
                                               "--op-shape",
                                               "acme::Norm=like:0",
                                               "--freeze",
                                               "layer1.weight",
                                               "--freeze",
                                               "b",
                                               "--shard",
                                               "zero2:8",
                                               "--pipeline",
                                               "4/1",
                                               "--micro-batches",
                                               "8",
                                               "--schedule",
                                               "gpipe",
                                               "--stage-cuts",
                                               "a",
                                               "--stage-cuts",
                                               "b",
                                               "--align",
                                               "512"};
  const Typed typed = ReadTyped(kArguments);
  const PlanRequest& request = *typed.request;
  CHECK(request.dims == DimSizes{{"N", 2}, {"T", 8}});
  CHECK(request.input_shapes == InputShapes{{"x", {2, 3}}});
  CHECK(request.batch == 8);
  CHECK(request.algorithm == "exact-dp");
  CHECK(request.budget == Budget{Budget::Kind::kPercent, Bytes(0), 60});
  CHECK(request.setting == KnobSetting{"B", 1048576});
  CHECK(request.objective == Objective::kMemory);
  CHECK(request.effort == SearchEffort::kThorough);
  CHECK(request.order == StepOrder::kFree);
  CHECK(request.granularity == Granularity::kLayer);
  CHECK(request.optimizer == Optimizer::kAdam);
  CHECK_FALSE(request.uses_liveness);
  CHECK(request.cost_model == "file:c.json");
  CHECK(request.autograd == Autograd::kTorch);
  CHECK(request.activation_type == ActivationType::kBFloat16);
  CHECK(request.fused == FusedOperators::kAttention);
  CHECK(request.restored == RestoredOperators::kNone);
  CHECK(request.rounding == Rounding::kNoGradient);
  CHECK(request.gradients == ParameterGradients::kArriving);
  CHECK(request.keep == NamePatterns{"a", "b"});
  CHECK(request.recompute == NamePatterns{"op:Relu"});
  CHECK(request.never_rerun == NamePatterns{"op:TopK"});
  CHECK(request.outputs == NamePatterns{"logits", "head"});
  CHECK(request.weights == NamePatterns{"w1"});
  CHECK(request.set_inputs == std::vector<std::string>{"n=2"});
  CHECK(request.op_shapes == std::vector<std::string>{"acme::Norm=like:0"});
  CHECK(request.freeze == NamePatterns{"layer1.weight", "b"});
  CHECK(request.sharding == Sharding{ShardingSystem::kZero2, 8});
  CHECK(request.pipeline == PipelineStage{4, 1});
  CHECK(request.micro_batches == 8);
  CHECK(request.schedule == PipelineSchedule::kGPipe);
  CHECK(request.stage_cuts == std::vector<std::string>{"a", "b"});
  CHECK(request.align_bytes == 512);
  std::string line;
  for (const std::string& argument : kArguments) line += " " + argument;
  CHECK(FlagsFor(request) == line);
  CHECK(typed.flags.Typed("dims") == "-D N=2 -D T=8");
  CHECK(typed.flags.Typed("budget") == "--budget 60%");
  CHECK(typed.flags.Typed("paper_budget").empty());
  CHECK(typed.flags.ValueOf("cost_model") == "file:c.json");
}

TEST_CASE("request flags: a list where one value is taken names the command that takes it") {
  struct Row {
    std::vector<std::string> arguments;
    const char* part;
  };
  const Row rows[] = {
      {{"-D", "N=8,16"},
       "-D: \"N=8,16\" names several sizes, and this command takes one; `ckplan "
       "compare MODEL -D N=8,16`"},
      {{"-D", "a b=8,16"}, "`ckplan compare MODEL -D 'a b=8,16'`"},
      {{"--budget", "50%,min"}, "`ckplan compare MODEL --budget 50%,min`"},
      {{"--budget-total", "1GiB,2GiB"}, "`ckplan compare MODEL --budget-total 1GiB,2GiB`"},
      {{"--added-time", "5,10%"}, "several percentages"},
      {{"--algo", "all"}, "`ckplan compare MODEL --algo all`"},
      {{"--algo", "best,dtr"}, "several algorithms"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.arguments.back());
    const Typed typed = ReadTyped(row.arguments);
    REQUIRE_FALSE(typed.request.ok());
    CHECK(typed.flags.HasList());
    CHECK(typed.request.error().code == ErrorCode::kUsage);
    CHECK(typed.request.error().message.find(row.part) != std::string::npos);
  }
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"-D", "N=8,x"}, {"--budget", "50%,"}, {"--algo", "best,bst"}}) {
    CAPTURE(wrong.back());
    const Typed typed = ReadTyped(wrong);
    REQUIRE_FALSE(typed.request.ok());
    CHECK(typed.request.error().message.find("compare") == std::string::npos);
  }
  CHECK_FALSE(ReadTyped({"-D", "N=8", "--budget", "50%"}).flags.HasList());
}

TEST_CASE("request flags: the texts of every field of the table are read as the same values") {
  PlanRequest full = FullRequest();
  // These fields are left out: decisions come from a file, no flag sets the unit of costs, and only
  // one kind of budget may be given.
  for (const std::string_view field : {"decisions", "cost_unit", "total_budget", "paper_budget",
                                       "added_time", "memory", "reserve"}) {
    ResetField(FieldOf(field), &full);
  }
  std::vector<std::string> arguments;
  for (const RequestField& field : RequestFields()) {
    if (IsDefault(field, full)) continue;
    const std::string flag = FlagOf(std::string(field.name));
    CHECK(flag.starts_with('-'));
    if (std::holds_alternative<bool PlanRequest::*>(field.member)) {
      arguments.push_back(flag);
      continue;
    }
    for (const std::string& text : TextsOf(field, full)) {
      arguments.insert(arguments.end(), {flag, text});
    }
  }
  const Result<PlanRequest> request = ReadTyped(arguments).request;
  REQUIRE(request.ok());
  CHECK(*request == full);
}

TEST_CASE("request flags: an invalid value is refused with its flag") {
  const struct {
    std::vector<std::string> arguments;
    std::string part;
  } kRows[] = {
      {{"--outputs", "a,,b"}, "--outputs: \"a,,b\" has a name without a letter"},
      {{"--set", "n"}, "--set: \"n\" is not INPUT=VALUE"},
      {{"--set", "n=1", "--set", "n=2"}, "--set: n has two values"},
      {{"--op-shape", "acme::Norm"}, "--op-shape: \"acme::Norm\" is not OP=RULE"},
      {{"--op-shape", "a::N=like:0", "--op-shape", "a::N=like:1"},
       "--op-shape: a::N is described twice"},
      {{"-D", "N"}, "--dim: \"N\" is not of the form NAME=N"},
      {{"-D", "N=-1"}, "--dim N: \"-1\" is not understood"},
      {{"-D", "N=1", "-D", "N=1"}, "--dim: N is bound twice"},
      {{"--input-shape", "x=1,"}, "--input-shape x: \"\" is not understood"},
      {{"--budget", "16G"}, "--budget: \"16G\" is not understood"},
      {{"--budget-total", "min"}, "--budget-total: \"min\" is not understood"},
      {{"--paper-budget", "60%"}, "--paper-budget: \"60%\" is not understood"},
      {{"--shard", "fsdp"}, "--shard: \"fsdp\" is not of the form SYSTEM:N"},
      {{"--shard", "fsdp:1"}, "--shard fsdp: \"1\" is not understood"},
      {{"--shard", "zero4:8"}, "--shard: unknown system \"zero4\"; did you mean"},
      {{"--pipeline", "4"}, "--pipeline: \"4\" is not of the form STAGES/INDEX"},
      {{"--pipeline", "4/4"}, "--pipeline INDEX: \"4\" is not understood"},
      {{"--pipeline", "0/0"}, "--pipeline STAGES: \"0\" is not understood"},
      {{"--offload", "pcie9"}, "--offload: no link is named \"pcie9\"; did you mean \"pcie4\"?"},
      {{"--offload", "c2c:0"}, "--offload: \"c2c:0\" is not a link: its rates must be"},
      {{"--host-memory", "60%"}, "--host-memory: \"60%\" is not understood"},
      {{"--batch", "0"}, "--batch: \"0\" is not understood"},
      {{"--micro-batches", "0"}, "--micro-batches: \"0\" is not understood"},
      {{"--stage-cuts", "a,"}, "--stage-cuts: \"a,\" has a name without a letter"},
      {{"--knob", "5"}, "--knob: \"5\" is not of the form NAME=N|SIZE"},
      {{"--knob", "segment=5"},
       "--knob: no algorithm has a parameter \"segment\"; did you mean \"segments\"? they are B, "
       "segments, C, point, k"},
      {{"--knob", "segments=5MiB"}, "--knob segments: \"5MiB\" is not understood"},
      {{"--knob", "C=40%"}, "--knob C: \"40%\" is not understood"},
      {{"--budget", "1", "--budget-total", "2"}, "--budget and --budget-total cannot be combined"},
      {{"--align", "0"}, "--align: \"0\" is not understood"},
      {{"--algo", "exact-pd"}, "unknown algorithm \"exact-pd\"; did you mean \"exact-dp\"?"},
      {{"--cost", "guess"}, "unknown cost model \"guess\""},
      {{"--autograd", "tf"}, "--autograd: \"tf\" is not one of torch-cuda, minimal, torch-cpu"},
  };
  for (const auto& row : kRows) {
    const Result<PlanRequest> request = ReadTyped(row.arguments).request;
    REQUIRE_FALSE(request.ok());
    CAPTURE(request.error().message);
    CHECK(request.error().message.find(row.part) != std::string::npos);
    CHECK(request.error().code == ErrorCode::kUsage);
  }
}

TEST_CASE("request flags: a knob is set to a number, or to a size if it counts bytes") {
  CHECK(ReadTyped({"--knob", "segments=5"}).request->setting == KnobSetting{"segments", 5});
  CHECK(ReadTyped({"--knob", "B=120MiB"}).request->setting == KnobSetting{"B", 120 << 20});
  CHECK(ReadTyped({"--knob", "C=0"}).request->setting == KnobSetting{"C", 0});
}

TEST_CASE("request flags: a remedy is shown as flags") {
  Error error = MakeError(ErrorCode::kUsage, "open dimensions: N, T");
  CHECK(MessageOf(error) == "open dimensions: N, T");
  error.remedy = {"bind them with", {{"dims", "N=..."}, {"dims", "T=..."}}};
  CHECK(MessageOf(error) == "open dimensions: N, T; bind them with -D N=... -D T=...");
  error.remedy = {"use", {{"total_budget", ""}}};
  CHECK(MessageOf(error) == "open dimensions: N, T; use --budget-total");
  error.remedy = {"raise", {{"something else", "7"}}};
  CHECK(MessageOf(error) == "open dimensions: N, T; raise something else 7");
}

}  // namespace
}  // namespace ckplan
