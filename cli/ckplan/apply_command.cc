// ckplan apply: writes a plan into its model.
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "cli/ckplan/annotation.h"
#include "cli/ckplan/commands.h"
#include "cli/ckplan/limits.h"
#include "cli/common/files.h"
#include "lib/emit/emitters.h"
#include "lib/planner/plan_file.h"

namespace ckplan {
namespace {

std::vector<InputFile> NamedInputs(const Options& options) {
  std::vector<InputFile> inputs = {{"the plan", options.plan}};
  if (!options.source.empty()) {
    for (InputFile& input : InputsOf(options.source)) inputs.push_back(std::move(input));
  }
  if (const auto costs = options.request.CostFile()) inputs.push_back({"the costs", *costs});
  return inputs;
}

}  // namespace

void AddApplyOptions(CommandLine& line, Options& options) {
  line.Positional("PLAN", "a plan file, or a model annotated with one", &options.plan);
  line.OptionalPositional("MODEL", "the model of the plan (default: beside it)", &options.source);
  line.Value("-o,--output", "FILE", "the annotated model to write", &options.output);
  options.request.Add(line, "cost_model");
  AddMemoryOption(line, options);
  AddScreenOptions(line, options);
}

Result<ExitCode> RunApply(const Options& options, const Screen& screen) {
  if (!options.output) {
    return MakeError(ErrorCode::kUsage, "-o is missing; name the annotated model to write");
  }
  if (*options.output == kStandardStream) {
    return MakeError(ErrorCode::kUsage, "an ONNX file is not written to standard output");
  }
  CKPLAN_RETURN_IF_ERROR(CheckWritable(*options.output));
  CKPLAN_RETURN_IF_ERROR(CheckApart(NamedInputs(options), {*options.output}));
  Progress progress(screen.shows_progress);
  progress.Stage(fmt::format("reading {}", options.plan));
  CKPLAN_ASSIGN_OR_RETURN(const PlanFile file, ReadPlanFile(options.plan, options.source,
                                                            options.request.ValueOf("cost_model")));
  progress.Clear();
  // The model may have been found beside the plan.
  CKPLAN_RETURN_IF_ERROR(CheckApart(InputsOf(file.model_path), {*options.output}));
  if (!file.source.is_model) {
    return MakeError(ErrorCode::kUsage, "a graph file cannot be annotated; only a model can");
  }
  for (const std::string& warning : file.source.warnings) screen.Warn(warning);
  std::vector<std::string> faults = JudgePlanFile(file);
  if (!faults.empty()) {
    return Error{ErrorCode::kCheckFailed,
                 fmt::format("{} does not pass the checker; nothing was written", options.plan),
                 {faults.front(), fmt::format("`ckplan check {}` tells all", options.plan)}};
  }
  const EmitSource source{file.source.graph, &file.plan,
                          AnnotatorOf(file.source, file.plan, file.model_path)};
  CKPLAN_ASSIGN_OR_RETURN(const Emitter* emitter, FindEmitter("onnx"));
  CKPLAN_ASSIGN_OR_RETURN(const Emitted emitted, emitter->emit(source, *options.output));
  for (const std::string& warning : emitted.warnings) screen.Warn(warning);
  CKPLAN_RETURN_IF_ERROR(emitted.file->Commit());
  screen.Note(fmt::format("wrote {}   checked: ok", *options.output));
  return ExitCode::kOk;
}

}  // namespace ckplan
