#include "cli/ckexec/validation_report.h"

#include <fmt/format.h>

#include "cli/ckexec/backends.h"
#include "cli/ckexec/commands.h"
#include "cli/ckexec/options.h"
#include "cli/ckexec/session.h"
#include "cli/common/files.h"
#include "cli/common/request_flags.h"
#include "cli/common/text_table.h"
#include "lib/base/text.h"
#include "lib/files/emit/json_writer.h"

namespace ckplan {

namespace {

std::string Percent(double share) { return fmt::format("{:+.1f}%", share * 100); }

// ---- Text ---------------------------------------------------------------------------------------

std::string DescribeEquality(Bytes measured, Bytes predicted) {
  if (measured == predicted) return "equal";
  return fmt::format("{:+} B", (measured - predicted).count());
}

// The driver's count and its difference from the prediction. The counted peak sums the same sizes
// as the prediction, so only the driver's count is independent of it.
std::string DescribeDriverPeak(const RunFigures& run) {
  if (!run.driver_peak) return "unknown";
  std::string text = HumanBytes(*run.driver_peak);
  if (run.predicted_peak > Bytes(0)) {
    const Bytes excess = *run.driver_peak - run.predicted_peak;
    text += fmt::format(" ({})", Percent(static_cast<double>(excess.count()) /
                                         static_cast<double>(run.predicted_peak.count())));
  }
  return text;
}

TextTable PeakTable(const ValidationReport& report) {
  const bool has_driver = report.plan.driver_peak || report.keep_all.driver_peak;
  TextTable table;
  table.columns = {{""}, {"predicted", true}, {"arena", true}, {"counted", true}, {"measured"}};
  if (has_driver) table.columns.push_back({"by the driver", true});
  const auto add = [&](std::string name, const RunFigures& run) {
    table.rows.push_back({std::move(name), HumanBytes(run.predicted_peak),
                          HumanBytes(run.arena_peak.total), HumanBytes(run.counted_peak.total),
                          DescribeEquality(run.counted_peak.total, run.predicted_peak)});
    if (has_driver) table.rows.back().push_back(DescribeDriverPeak(run));
  };
  add("keeping all", report.keep_all);
  add("the plan", report.plan);
  return table;
}

std::string PeakParts(const ValidationReport& report) {
  const MeasuredPeak& peak = report.plan.counted_peak;
  std::string text = fmt::format("  at its peak: activations {}, gradients {}, workspaces {}\n",
                                 HumanBytes(peak.tensors), HumanBytes(peak.gradients),
                                 HumanBytes(peak.workspaces));
  const RunFigures& run = report.plan;
  if (run.host_bytes > Bytes(0)) {
    text += fmt::format("  on the host: predicted {}, measured {} in a block of {}, counted {}\n",
                        HumanBytes(run.predicted_host_peak), HumanBytes(run.host_peak),
                        HumanBytes(run.host_bytes), HumanBytes(run.counted_host_peak));
  }
  if (!report.has_planned_workspaces) {
    const bool has_any = report.unplanned_workspace > Bytes(0);
    text += fmt::format("  outside the plan: workspaces of up to {}{}\n",
                        HumanBytes(report.unplanned_workspace),
                        has_any ? "; plan with --cost file: to include them" : "");
  }
  const ConstantUsage& constants = report.constants;
  text += fmt::format(
      "  independent of the plan: parameters {}, their gradients {}, inputs {}, tables {}\n",
      HumanBytes(constants.parameters), HumanBytes(constants.parameter_gradients),
      HumanBytes(constants.inputs), HumanBytes(constants.derived));
  for (const MemoryUse& use : report.overheads) {
    text += fmt::format("  not included: {} {}\n", use.what, HumanBytes(Bytes(use.bytes)));
  }
  return text;
}

std::string_view NameOf(StepTiming timing) {
  switch (timing) {
    case StepTiming::kOperators:
      return "operators";
    case StepTiming::kSteps:
      return "steps";
    case StepTiming::kRecorded:
      return "graphs";
  }
  return "";
}

std::string TimeText(const ValidationReport& report, const std::string& cost_model) {
  if (!report.timing) return "";
  const auto both = [&report](std::optional<double> RunFigures::*seconds) {
    return fmt::format("{} keeping all, {} with the plan",
                       DurationText((report.keep_all.*seconds).value_or(0)),
                       DurationText((report.plan.*seconds).value_or(0)));
  };
  std::string text =
      fmt::format("time       {} ({} of it recomputing)\n", both(&RunFigures::seconds),
                  DurationText(report.plan.recompute_seconds.value_or(0)));
  if (report.timing != StepTiming::kOperators) {
    text +=
        fmt::format("           operator by operator: {}\n", both(&RunFigures::operator_seconds));
  }
  if (report.plan.predicted_seconds) {
    text += fmt::format("predicted  {}\n", both(&RunFigures::predicted_seconds));
  }
  if (report.measured_overhead && report.predicted_overhead) {
    text += fmt::format("overhead   {} measured, {} predicted (cost model {})\n",
                        Percent(*report.measured_overhead), Percent(*report.predicted_overhead),
                        cost_model);
  }
  if (report.plan.predicted_seconds && report.timing != StepTiming::kOperators) {
    text += fmt::format("compared   {} with costs measured operator by operator; both run fused\n",
                        report.timing == StepTiming::kSteps ? "undisturbed steps" : "CUDA graphs");
  }
  return text;
}

std::string WeightText(const ConstantUsage& constants, uint64_t seed) {
  if (constants.leaves_from_seed == 0) return "weights    all from the file\n";
  return fmt::format("weights    {} random (seed {}), the others from the file\n",
                     constants.leaves_from_seed, seed);
}

std::string GradientText(const ValidationReport& report) {
  const auto differing = static_cast<int64_t>(report.differences.size());
  return fmt::format("gradients  {} of {} parameters equal, bit for bit, in all runs\n",
                     report.parameters - differing, report.parameters);
}

// ---- JSON ---------------------------------------------------------------------------------------

void WritePeak(JsonWriter& json, std::string_view key, const MeasuredPeak& peak) {
  json.Key(key).BeginObject(JsonLayout::kInline);
  json.Key("total_bytes").Amount(peak.total);
  json.Key("activation_bytes").Amount(peak.tensors);
  json.Key("gradient_bytes").Amount(peak.gradients);
  json.Key("workspace_bytes").Amount(peak.workspaces);
  json.Key("step").Integer(peak.step);
  json.End();
}

void WriteRun(JsonWriter& json, std::string_view key, const RunFigures& run) {
  json.Key(key).BeginObject(JsonLayout::kLines);
  json.Key("predicted_peak_bytes").Amount(run.predicted_peak);
  WritePeak(json, "arena_peak", run.arena_peak);
  WritePeak(json, "counted_peak", run.counted_peak);
  json.Key("driver_peak_bytes").Amount(run.driver_peak);
  json.Key("arena_bytes").Amount(run.arena_bytes);
  json.Key("arena_used_bytes").Amount(run.arena_used);
  if (run.host_bytes > Bytes(0)) {
    json.Key("host").BeginObject(JsonLayout::kInline);
    json.Key("predicted_peak_bytes").Amount(run.predicted_host_peak);
    json.Key("peak_bytes").Amount(run.host_peak);
    json.Key("counted_peak_bytes").Amount(run.counted_host_peak);
    json.Key("block_bytes").Amount(run.host_bytes);
    json.End();
  }
  json.Key("loss").Decimal(run.loss, 9);
  json.Key("seconds").Decimal(run.seconds, 6);
  json.Key("operator_seconds").Decimal(run.operator_seconds, 6);
  json.Key("recompute_seconds").Decimal(run.recompute_seconds, 6);
  json.Key("predicted_seconds").Decimal(run.predicted_seconds, 6);
  json.End();
}

void WriteConstants(JsonWriter& json, const ConstantUsage& constants) {
  json.Key("constants").BeginObject(JsonLayout::kLines);
  json.Key("parameter_bytes").Amount(constants.parameters);
  json.Key("parameter_gradient_bytes").Amount(constants.parameter_gradients);
  json.Key("input_bytes").Amount(constants.inputs);
  json.Key("other_bytes").Amount(constants.derived);
  json.Key("from_file").Integer(constants.leaves_from_file);
  json.Key("from_seed").Integer(constants.leaves_from_seed);
  json.End();
}

void WriteOverheads(JsonWriter& json, const std::vector<MemoryUse>& overheads) {
  json.Key("overheads").BeginArray(JsonLayout::kLines);
  for (const MemoryUse& use : overheads) {
    json.BeginObject(JsonLayout::kInline);
    json.Key("what").Text(use.what);
    json.Key("bytes").Amount(Bytes(use.bytes));
    json.End();
  }
  json.End();
}

void WriteGradients(JsonWriter& json, const ValidationReport& report) {
  json.Key("gradients").BeginObject(JsonLayout::kLines);
  json.Key("parameters").Integer(report.parameters);
  json.Key("differing").BeginArray(JsonLayout::kLines);
  for (const ParameterDifference& difference : report.differences) {
    json.BeginObject(JsonLayout::kInline);
    json.Key("name").Text(difference.name);
    json.Key("elements").Integer(difference.elements);
    json.Key("largest").Text(fmt::format("{:g}", difference.largest));
    json.End();
  }
  json.End().End();
}

void WriteLines(JsonWriter& json, std::string_view key, const std::vector<std::string>& lines) {
  json.Key(key).BeginArray(JsonLayout::kLines);
  for (const std::string& line : lines) json.Text(line);
  json.End();
}

}  // namespace

std::string ValidationText(const ValidationReport& report, const ValidationContext& context) {
  std::string text =
      fmt::format("{}   {}   {}\n\n", Printable(context.plan.model.name, kLongestName),
                  context.plan.request.algorithm, context.backend);
  if (report.failures.empty()) {
    text += PeakTable(report).Text() + PeakParts(report) + "\n";
    text += GradientText(report) + TimeText(report, context.plan.request.cost_model);
    text += WeightText(report.constants, context.options.seed);
    for (const std::string& note : report.notes)
      text += fmt::format("note       {}\n", PrintableMessage(note));
    return text + "\nproven: this plan computes the same gradients in the predicted memory\n";
  }
  for (const std::string& note : report.notes)
    text += fmt::format("note       {}\n", PrintableMessage(note));
  return text;
}

std::string ValidationJson(const ValidationReport& report, const ValidationContext& context) {
  JsonWriter json;
  json.BeginObject(JsonLayout::kLines);
  json.Key("schema_version").Text("1.0");
  json.Key("ok").Boolean(report.failures.empty());
  json.Key("model").BeginObject(JsonLayout::kInline);
  json.Key("name").Text(context.plan.model.name);
  json.Key("sha256").Text(context.plan.model.sha256);
  json.End();
  json.Key("algorithm").Text(context.plan.request.algorithm);
  json.Key("backend").Text(context.backend);
  json.Key("seed").Integer(static_cast<int64_t>(context.options.seed));
  json.Key("loss").Text(NameOf(context.options.loss));
  WriteRun(json, "keep_all", report.keep_all);
  WriteRun(json, "plan", report.plan);
  json.Key("has_planned_workspaces").Boolean(report.has_planned_workspaces);
  json.Key("unplanned_workspace_bytes").Amount(report.unplanned_workspace);
  WriteConstants(json, report.constants);
  WriteOverheads(json, report.overheads);
  WriteGradients(json, report);
  json.Key("timing").TextOrNull(report.timing ? NameOf(*report.timing) : "");
  json.Key("predicted_overhead").Decimal(report.predicted_overhead, 6);
  json.Key("measured_overhead").Decimal(report.measured_overhead, 6);
  WriteLines(json, "notes", report.notes);
  std::vector<std::string> failures;
  for (const Error& failure : report.failures) failures.push_back(MessageOf(failure));
  WriteLines(json, "failures", failures);
  json.End();
  return std::move(json).Finish();
}

// ckexec validate: proves a plan by running it.

namespace {

Error NotProvenError(const ModelAndPlan& planned, const std::vector<Error>& failures) {
  Error error = MakeError(ErrorCode::kCheckFailed,
                          fmt::format("{}: the plan is not proven", planned.model.identity().name));
  for (const Error& failure : failures) error.notes.push_back(MessageOf(failure));
  return error;
}

// The plan may fit in memory where keeping everything does not.
Error AddMemoryNeedsNote(Error error, const Plan& plan) {
  if (error.code != ErrorCode::kInfeasible) return error;
  error.notes.push_back(
      fmt::format("validate runs the step with the plan ({}) and keeping everything ({}); `ckexec "
                  "run` runs only the plan",
                  HumanBytes(plan.figures.peak), HumanBytes(plan.figures.baseline_peak)));
  return error;
}

}  // namespace

void AddValidateOptions(CommandLine& line, ExecOptions& options) {
  line.Positional("MODEL", "the model; must contain a plan unless --plan is given", &options.model);
  line.Value("--plan", "PLAN", "the plan file, if the model contains none", &options.plan);
  AddPlanCostOption(line, options);
  AddBackendOptions(line, options);
  line.Choice("--loss", {"given", "cross-entropy"}, "loss function of the training step",
              &options.loss);
  line.Value("--runs", "N", "timed steps with and without the plan (default 3; 0 for none)",
             &options.runs);
  line.Flag("--graph", "time steps of the cuda backend as CUDA graphs", &options.uses_graphs);
  line.Value("-o,--output", "FILE", "where to write the report as JSON; - for standard output",
             &options.output);
  line.Choice("-f,--format", {"text", "json"}, "output format", &options.format);
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
                     fmt::format("--graph needs a GPU, but the {} backend uses none; use --backend "
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
  if (!found.ok()) return AddMemoryNeedsNote(found.error(), *planned.plan);
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
  if (!report.failures.empty()) return NotProvenError(planned, report.failures);
  return ExitCode::kOk;
}

}  // namespace ckplan
