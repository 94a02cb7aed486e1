// ckexec run: trains for a number of steps.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

#include "cli/ckexec/backends.h"
#include "cli/ckexec/commands.h"
#include "cli/ckexec/options.h"
#include "cli/ckexec/session.h"
#include "cli/common/files.h"
#include "lib/base/text.h"
#include "lib/executor/core/train.h"
#include "lib/files/emit/json_writer.h"

namespace ckplan {
namespace {

Result<double> LearningRateOf(const std::optional<std::string>& text) {
  if (!text) return TrainOptions().learning_rate;
  double rate = 0;
  const char* const end = text->data() + text->size();
  const auto parsed = std::from_chars(text->data(), end, rate);
  if (parsed.ec == std::errc() && parsed.ptr == end && std::isfinite(rate) && rate >= 0)
    return rate;
  return MakeError(ErrorCode::kUsage,
                   fmt::format("--learning-rate: \"{}\" is not a number of 0 or more", *text));
}

// Follows the plan if there is one, otherwise keeps everything in the model's order.
Result<PlacedProgram> ScheduleOf(const Backend& backend, const ModelAndPlan& planned,
                                 const StepOnBackend& step) {
  if (planned.plan) {
    CKPLAN_ASSIGN_OR_RETURN(
        const SizedGraph run,
        GraphToRun(*step.graph, *step.operators, planned.lowered.graph, WorkspacesOf(*planned.plan),
                   planned.plan->request.align_bytes));
    return PlaceByPlan(*step.graph, run, *planned.plan);
  }
  std::vector<NodeId> order;
  for (const NodeId id : step.graph->graph.nodes().ids()) order.push_back(id);
  CKPLAN_ASSIGN_OR_RETURN(const SizedGraph run,
                          GraphToRun(*step.graph, *step.operators, planned.lowered.graph,
                                     PlannedWorkspaces::kTemporaries, BufferAlignment(backend)));
  return PlaceKeepAll(*step.graph, run, KeepAllSchedule(order));
}

std::string StepsJson(const ModelAndPlan& planned, const TrainOptions& train,
                      const PlacedProgram& plan, const std::vector<TrainedStep>& steps) {
  JsonWriter json;
  json.BeginObject(JsonLayout::kLines);
  json.Key("model").Text(planned.model.identity().name);
  json.Key("algorithm").Text(planned.plan ? planned.plan->request.algorithm : "keep-all");
  json.Key("loss").Text(NameOf(train.loss));
  json.Key("arena_bytes").Amount(plan.arena_bytes);
  json.Key("steps").BeginArray(JsonLayout::kLines);
  for (const TrainedStep& step : steps) {
    json.BeginObject(JsonLayout::kInline);
    json.Key("loss").Decimal(step.loss, 6);
    json.Key("seconds").Decimal(step.seconds, 6);
    json.End();
  }
  json.End().End();
  return std::move(json).Finish();
}

// Descriptions of weights without contents, in the order of AbsentWeight.
constexpr std::array<std::string_view, kAbsentWeightKinds> kAbsentWeights = {
    "missing from the model", "with a missing or empty data file",
    "with contents of the wrong length or an unsupported type",
    "in a model file over 2 GiB, which ckexec does not read"};

// Describes the randomly initialized weights. Empty if all weights come from the model.
std::string DescribeRandomWeights(const ConstantUsage& usage, uint64_t seed) {
  if (usage.leaves_from_seed == 0) return "";
  std::string why;
  for (size_t kind = 0; kind < kAbsentWeights.size(); ++kind) {
    if (usage.absent[kind] == 0) continue;
    why +=
        fmt::format("{}{} {}", why.empty() ? "" : ", ", usage.absent[kind], kAbsentWeights[kind]);
  }
  return fmt::format("{} of {} weights are random (seed {}): {}", usage.leaves_from_seed,
                     usage.leaves_from_seed + usage.leaves_from_file, seed, why);
}

Error AddRemedyNote(Error error, bool has_plan, Bytes arena) {
  if (error.code != ErrorCode::kInfeasible) return error;
  error.notes.push_back(
      has_plan
          ? fmt::format("the plan needs {}; plan again with a smaller --budget", HumanBytes(arena))
          : fmt::format("keeping everything needs {}; plan with --budget and run that plan",
                        HumanBytes(arena)));
  return error;
}

}  // namespace

void AddRunOptions(CommandLine& line, ExecOptions& options) {
  line.Positional("MODEL", "the model; may contain a plan", &options.model);
  line.Value("--plan", "PLAN", "the plan file, if the model contains none", &options.plan);
  AddPlanCostOption(line, options);
  AddDimOptions(line, options);
  AddBackendOptions(line, options);
  line.Value("--steps", "N", "training steps on one batch (default 1)", &options.steps);
  line.Value("--learning-rate", "RATE", "learning rate of plain gradient descent (default 0.01)",
             &options.learning_rate);
  line.Choice("--loss", {"cross-entropy", "given"}, "loss function to minimize", &options.loss);
  line.Value("--tensors", "FILE.onnx",
             "write all inputs and results of the first step to this file", &options.tensors);
  line.Choice("-f,--format", {"text", "json"}, "output format", &options.format);
  AddExecScreenOptions(line, options);
}

Result<ExitCode> RunRun(const ExecOptions& options, const Screen& screen) {
  TrainOptions train;
  CKPLAN_ASSIGN_OR_RETURN(train.seed, SeedOf(options));
  CKPLAN_ASSIGN_OR_RETURN(train.steps, CountOf(options.steps, "--steps", train.steps, 1));
  CKPLAN_ASSIGN_OR_RETURN(train.learning_rate, LearningRateOf(options.learning_rate));
  if (options.loss == NameOf(LossKind::kGiven)) train.loss = LossKind::kGiven;
  if (options.tensors == kStandardStream) {
    return MakeError(ErrorCode::kUsage,
                     "--tensors: an ONNX file cannot go to standard output; name a file");
  }
  CKPLAN_RETURN_IF_ERROR(CheckOutput(options, options.tensors));
  CKPLAN_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend, MakeBackend(options));
  CKPLAN_ASSIGN_OR_RETURN(const ModelAndPlan planned,
                          LoadModelAndPlan(options, *backend, PlanNeed::kOptional));
  CKPLAN_ASSIGN_OR_RETURN(const StepOnBackend step,
                          StepOnBackend::Create(*backend, planned, options));
  CKPLAN_RETURN_IF_ERROR(RequireLoss(train.loss, *step.graph));  // Fail before printing anything.
  CKPLAN_ASSIGN_OR_RETURN(const PlacedProgram plan, ScheduleOf(*backend, planned, step));
  const std::string made_up = DescribeRandomWeights(step.constants->usage(), train.seed);
  if (!made_up.empty()) screen.Note("ckexec: warning: " + made_up);
  for (const std::string& note : step.graph->notes) screen.Note(note);
  for (const std::string& note : step.operators->notes) screen.Note(note);
  if (options.tensors) {
    CKPLAN_ASSIGN_OR_RETURN(const std::string tensors,
                            TakeSnapshot(*backend, *step.graph, *step.operators, *step.constants,
                                         plan, train.loss, train.seed));
    CKPLAN_RETURN_IF_ERROR(WriteFiles({{*options.tensors, tensors}}));
  }
  const bool is_text = options.format == "text";
  if (is_text && !screen.is_quiet) {
    CKPLAN_RETURN_IF_ERROR(screen.Print(fmt::format(
        "{}   {}   {}: {}   arena {}\n", Printable(planned.model.identity().name, kLongestName),
        planned.plan ? planned.plan->request.algorithm : "keep-all", backend->name(),
        backend->Describe(), HumanBytes(plan.arena_bytes))));
  }
  int number = 0;
  Result<Done> printed = Done{};
  const auto print = [&](const TrainedStep& trained) {
    ++number;
    if (!is_text || !printed.ok()) return;
    printed = screen.Print(fmt::format("step {:>4}   loss {:.6f}   {}\n", number, trained.loss,
                                       DurationText(trained.seconds)));
  };
  const Result<std::vector<TrainedStep>> steps =
      Train(*backend, *step.graph, *step.operators, *step.constants, plan, train, print);
  if (!steps.ok()) {
    return AddRemedyNote(steps.error(), planned.plan.has_value(), plan.arena_bytes);
  }
  CKPLAN_RETURN_IF_ERROR(printed);
  if (!is_text) CKPLAN_RETURN_IF_ERROR(screen.Print(StepsJson(planned, train, plan, *steps)));
  return ExitCode::kOk;
}

}  // namespace ckplan
