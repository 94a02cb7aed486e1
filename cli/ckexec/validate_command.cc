// ckexec validate: proves a plan by running it.
#include <fmt/format.h>

#include "cli/ckexec/backends.h"
#include "cli/ckexec/commands.h"
#include "cli/ckexec/session.h"
#include "cli/ckexec/validation_report.h"
#include "cli/common/files.h"
#include "cli/common/request_flags.h"
#include "lib/base/text.h"

namespace ckplan {
namespace {

Error NotProven(const ModelAndPlan& planned, const std::vector<Error>& failures) {
  Error error = MakeError(ErrorCode::kCheckFailed,
                          fmt::format("{}: the plan is not proven", planned.model.identity().name));
  for (const Error& failure : failures) error.notes.push_back(MessageOf(failure));
  return error;
}

// There may be enough memory for the plan, but not for keeping everything.
Error WithMemoryOfBoth(Error error, const Plan& plan) {
  if (error.code != ErrorCode::kInfeasible) return error;
  error.notes.push_back(
      fmt::format("validate runs the step by the plan, in {}, and also keeping everything, in {}; "
                  "`ckexec run` runs the plan alone",
                  HumanBytes(plan.figures.peak), HumanBytes(plan.figures.baseline_peak)));
  return error;
}

}  // namespace

void AddValidateOptions(CommandLine& line, ExecOptions& options) {
  line.Positional("MODEL", "the model, with a plan in it or with --plan", &options.model);
  line.Value("--plan", "PLAN", "the plan file, where the model holds none", &options.plan);
  AddPlanCostOption(line, options);
  AddBackendOptions(line, options);
  line.Choice("--loss", {"given", "cross-entropy"},
              "loss function, which gives the outputs' gradients", &options.loss);
  line.Value("--runs", "N", "timed steps of each kind (default 3; 0 for none)", &options.runs);
  line.Flag("--graph", "time steps of the cuda backend as CUDA graphs", &options.uses_graphs);
  line.Value("-o,--output", "FILE", "where to write the report as JSON; - for standard output",
             &options.output);
  line.Choice("-f,--format", {"text", "json"}, "format of the output", &options.format);
  AddExecScreenOptions(line, options);
}

Result<ExitCode> RunValidate(const ExecOptions& options, const Screen& screen) {
  ValidateOptions validate;
  CKPLAN_ASSIGN_OR_RETURN(validate.seed, SeedOf(options));
  CKPLAN_ASSIGN_OR_RETURN(validate.timed_runs,
                          CountOf(options.runs, "--runs", validate.timed_runs, 0));
  if (options.loss == NameOf(LossKind::kCrossEntropy)) validate.loss = LossKind::kCrossEntropy;
  CKPLAN_RETURN_IF_ERROR(CheckOutput(options, options.output));
  CKPLAN_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend, MakeBackend(options));
  validate.records_steps = options.uses_graphs;
  if (options.uses_graphs && !backend->IsAsynchronous()) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("--graph is for a GPU, and the {} backend has none; use --backend "
                                 "cuda, or leave out --graph",
                                 backend->name()));
  }
  Progress progress(screen.shows_progress);
  progress.Stage(fmt::format("reading {}", options.model));
  CKPLAN_ASSIGN_OR_RETURN(const ModelAndPlan planned,
                          LoadModelAndPlan(options, *backend, PlanNeed::kRequired));
  CKPLAN_ASSIGN_OR_RETURN(const StepOnBackend step,
                          StepOnBackend::Create(*backend, planned, options));
  progress.Stage("running");
  const Result<ValidationReport> found =
      ValidatePlan(*backend, *step.graph, *step.operators, *step.constants, planned.lowered.graph,
                   *planned.plan, validate);
  progress.Clear();
  if (!found.ok()) return WithMemoryOfBoth(found.error(), *planned.plan);
  const ValidationReport& report = *found;
  const ValidationContext context{
      *planned.plan, fmt::format("{}: {}", backend->name(), backend->Describe()), validate};
  const std::string json = ValidationJson(report, context);
  const bool json_to_stdout = options.format == "json" || options.output == kStandardStream;
  if (options.output && options.output != kStandardStream) {
    CKPLAN_RETURN_IF_ERROR(WriteUninterrupted(*options.output, json));
  }
  if (json_to_stdout) {
    CKPLAN_RETURN_IF_ERROR(screen.Print(json));
  } else if (!screen.is_quiet) {
    CKPLAN_RETURN_IF_ERROR(screen.Print(ValidationText(report, context)));
  }
  if (!report.failures.empty()) return NotProven(planned, report.failures);
  return ExitCode::kOk;
}

}  // namespace ckplan
