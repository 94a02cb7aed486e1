// ckplan apply: writes a saved plan into its model, or in other forms.
#include <fmt/format.h>

#include "cli/ckplan/commands.h"
#include "cli/ckplan/options.h"
#include "cli/ckplan/outputs.h"
#include "cli/ckplan/saved_plan.h"
#include "lib/files/emit/emitters.h"
#include "lib/files/input/plan_file.h"

namespace ckplan {

void AddApplyOptions(CommandLine& line, Options& options) {
  line.Positional("PLAN", "a plan file, or a model annotated with one", &options.plan);
  line.OptionalPositional("MODEL", "the model of the plan (default: beside it)", &options.source);
  line.Value("-o,--output", "FILE", "the annotated model to write", &options.output);
  line.List("--emit", "KIND=FILE",
            fmt::format("write the plan as {}", EmitterNames(EmitSubject::kPlan, " or ")),
            &options.emits);
  options.request.Add(line, "cost_model");
  options.request.Add(line, "workspaces");
  AddCommonOptions(line, options);
}

Result<ExitCode> RunApply(const Options& options, const Screen& screen) {
  CKPLAN_ASSIGN_OR_RETURN(const Outputs outputs,
                          Outputs::Create(options, "onnx", EmitSubject::kPlan));
  if (outputs.empty()) {
    return MakeError(ErrorCode::kUsage,
                     "-o is missing; name the annotated model to write, or --emit KIND=FILE");
  }
  Progress progress(screen.shows_progress);
  progress.Stage(fmt::format("reading {}", options.plan));
  CKPLAN_ASSIGN_OR_RETURN(const PlanFile file,
                          ReadPlanFile(options.plan, options.source, options.request.PlanFiles()));
  progress.Clear();
  if (options.output && !file.source.is_model) {
    return MakeError(ErrorCode::kUsage, "a graph file cannot be annotated; name the ONNX model");
  }
  for (const std::string& warning : file.source.warnings) screen.Warn(warning);
  CKPLAN_RETURN_IF_ERROR(CheckSavedPlan(file, options.plan, outputs));
  CKPLAN_RETURN_IF_ERROR(outputs.Write(
      EmitSourceOf(file.source, &file.plan, AnnotatorOf(file.source, file.plan, file.model_path)),
      screen));
  for (const std::string& path : outputs.Files()) {
    screen.Note(fmt::format("wrote {}   checked: ok", path));
  }
  return ExitCode::kOk;
}

}  // namespace ckplan
