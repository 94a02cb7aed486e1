// ckplan inspect: what a model consists of.
#include <fmt/format.h>

#include "cli/ckplan/commands.h"
#include "cli/ckplan/fail_on.h"
#include "cli/ckplan/inspection_text.h"
#include "cli/ckplan/limits.h"
#include "lib/emit/json_inspection.h"
#include "lib/schedule/simulate.h"

namespace ckplan {

void AddInspectOptions(CommandLine& line, Options& options) {
  line.Positionals("MODEL", "ONNX models or graph.json files, shown side by side",
                   &options.sources);
  options.request.Add(line, RequestFlags::Group::kReading);
  options.request.Add(line, "optimizer");
  line.List("--fail-on", "LIMIT",
            "exit with 1 above it: peak>16GiB, total>24GiB, saved>8GiB, warnings>0",
            &options.fail_on);
  line.Choice("-f,--format", {"text", "json", "md", "csv"}, "format of the output",
              &options.format);
  AddMemoryOption(line, options);
  AddScreenOptions(line, options);
}

namespace {

Result<std::vector<Threshold>> ModelLimitsOf(const Options& options) {
  std::vector<Threshold> thresholds;
  for (const std::string& text : options.fail_on) {
    CKPLAN_ASSIGN_OR_RETURN(Threshold threshold, ParseThreshold(text, LimitSubject::kModel));
    thresholds.push_back(std::move(threshold));
  }
  return thresholds;
}

Inspection Inspect(const Source& source) {
  Inspection result = InspectGraph(source.step());
  result.model = source.identity;
  result.request = source.request;
  result.keep_all_peak = KeepAllPeak(source.step());
  result.optimizer_state =
      OptimizerState(source.request.optimizer, source.step().optimized_bytes());
  result.warnings = source.warnings;
  return result;
}

// Prints on standard error which limits the models fail, unless `is_reported`. Returns the exit
// code.
ExitCode ReportModelLimits(const std::vector<Inspection>& inspections, bool is_reported) {
  ExitCode code = ExitCode::kOk;
  for (const Inspection& one : inspections) {
    if (AllHold(one.verdicts)) continue;
    PrintFailures(one.model.name, one.verdicts, is_reported);
    code = ExitCode::kDifferent;
  }
  return code;
}

}  // namespace

Result<ExitCode> RunInspect(const Options& options, const Screen& screen) {
  CKPLAN_ASSIGN_OR_RETURN(const PlanRequest request, options.request.Read());
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<Threshold> limits, ModelLimitsOf(options));
  std::vector<Inspection> inspections;
  Progress progress(screen.shows_progress);
  for (const std::string& path : options.sources) {
    progress.Stage(fmt::format("reading {}", path));
    CKPLAN_ASSIGN_OR_RETURN(const Source source, LoadSource(path, request));
    inspections.push_back(Inspect(source));
    inspections.back().verdicts = JudgeFailOn(limits, MeasuresOf(inspections.back()));
    progress.Clear();
    for (const std::string& warning : source.warnings) screen.Warn(warning);
  }
  const std::string text = options.format == "json"  ? InspectionJson(inspections)
                           : options.format == "md"  ? InspectionMarkdown(inspections)
                           : options.format == "csv" ? InspectionCsv(inspections)
                                                     : InspectionText(inspections, screen);
  CKPLAN_RETURN_IF_ERROR(screen.Print(text));
  return ReportModelLimits(inspections, options.format == "text");
}

}  // namespace ckplan
