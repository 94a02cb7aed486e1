// ckplan inspect: what a model consists of.
#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "cli/ckplan/commands.h"
#include "cli/ckplan/fail_on.h"
#include "cli/ckplan/inspection_text.h"
#include "cli/ckplan/limits.h"
#include "cli/ckplan/plan_summary.h"
#include "cli/ckplan/request_text.h"
#include "cli/ckplan/suggestions.h"
#include "cli/common/command_line.h"
#include "lib/base/text.h"
#include "lib/files/emit/findings.h"
#include "lib/files/input/load_source.h"
#include "lib/planning/plan/optimizer_state.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {

void AddInspectOptions(CommandLine& line, Options& options) {
  line.Positionals("MODEL", "ONNX models or graph.json files, shown side by side",
                   &options.sources);
  options.request.Add(line, RequestFlags::Group::kReading);
  options.request.Add(line, "optimizer");
  options.request.Add(line, "master_weights");
  line.List("--fail-on", "LIMIT",
            "exit with 1 if a limit is exceeded: peak>16GiB, total>24GiB, saved>8GiB, warnings>0",
            &options.fail_on);
  line.Value("--max-peak", "SIZE", "short for --fail-on 'peak>SIZE'", &options.max_peak);
  options.request.Add(line, "memory", "", "exit with 1 if training needs more: 8GiB, rtx4090");
  options.request.Add(line, "reserve");
  line.Choice("-f,--format", {"text", "json", "md", "csv"}, "format of the output",
              &options.format);
  AddMemoryOption(line, options);
  AddScreenOptions(line, options);
}

namespace {

Inspection Inspect(const Source& source) {
  Inspection result = InspectGraph(source.step());
  result.model = source.identity;
  result.request = source.request;
  result.keep_all_peak = KeepAllPeak(source.step());
  result.optimizer_state = OptimizerState(source.request, source.step().optimized());
  result.restored = CountRestored(source.restored);
  result.warnings = source.warnings;
  if (source.request.memory.is_given()) result.accounting = AccountForKeepAll(source);
  return result;
}

// Lists the dimensions of a model that nothing else can be shown of until they have sizes.
Result<ExitCode> ListOpenDims(const Options& options, const Error& error, const Screen& screen) {
  const std::vector<std::string> dims = OpenDimsIn(error);
  std::string text =
      fmt::format("ckplan {}   {}\n  open dimensions  ", CKPLAN_VERSION,
                  Printable(std::filesystem::path(options.sources.front()).filename().string()));
  for (const std::string& dim : dims) {
    text += " " + Printable(dim, kLongestName);
  }
  CKPLAN_RETURN_IF_ERROR(screen.Print(text + "\n"));
  const std::string sizes = SuggestedSizes(options, error);
  if (!sizes.empty()) screen.Note("next: ckplan inspect" + options.typed.With(sizes));
  return ExitCode::kOk;
}

// Says which part of a file can be trained that is no training step as a whole.
Result<ExitCode> ShowTrainablePart(const Options& options, const Error& error,
                                   const Screen& screen) {
  const std::string ends = SuggestedEnds(error);
  const std::string file = std::filesystem::path(options.sources.front()).filename().string();
  std::string why = error.message;
  if (why.starts_with(file + ": ")) why.erase(0, file.size() + 2);
  CKPLAN_RETURN_IF_ERROR(screen.Print(fmt::format(
      "ckplan {}   {}\n  not a step       {}\n  can be trained   up to {}\n", CKPLAN_VERSION,
      Printable(file), PrintableMessage(why), Printable(ends, kLongestName))));
  if (options.typed.CanRepeat()) {
    screen.Note("next: ckplan plan" + options.typed.With(" --outputs " + ShellWord(ends)));
  }
  return ExitCode::kOk;
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
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<Threshold> limits,
                          ThresholdsIn(options, LimitSubject::kModel));
  std::vector<Inspection> inspections;
  Progress progress(screen.shows_progress);
  for (const std::string& path : options.sources) {
    progress.Stage(fmt::format("reading {}", path));
    Result<Source> loaded = LoadSource(path, request);
    const bool is_alone = options.sources.size() == 1 && options.format == "text";
    if (is_alone && limits.empty() && !loaded.ok() && !OpenDimsIn(loaded.error()).empty()) {
      progress.Clear();
      return ListOpenDims(options, loaded.error(), screen);
    }
    if (is_alone && limits.empty() && !loaded.ok() && !SuggestedEnds(loaded.error()).empty()) {
      progress.Clear();
      return ShowTrainablePart(options, loaded.error(), screen);
    }
    CKPLAN_ASSIGN_OR_RETURN(const Source source, std::move(loaded));
    inspections.push_back(Inspect(source));
    ModelMeasures measures = MeasuresOf(inspections.back());
    measures.need = [&](const Budget& memory) {
      PlanRequest within = source.request;
      within.memory = memory;
      return AccountFor({source.step(), within, source.buffers}, source.step().KeepAll(),
                        measures.peak)
          .need();
    };
    inspections.back().verdicts = EvaluateFailOn(limits, measures);
    progress.Clear();
    WarnOf(source, screen);
    // With a memory, the source has the warning.
    if (!request.memory.is_given()) WarnOfUnknownState(limits, source, screen);
  }
  const std::string text = options.format == "json"  ? InspectionJson(inspections)
                           : options.format == "md"  ? InspectionMarkdown(inspections)
                           : options.format == "csv" ? InspectionCsv(inspections)
                                                     : InspectionText(inspections, screen);
  CKPLAN_RETURN_IF_ERROR(screen.Print(text));
  return ReportModelLimits(inspections, options.format == "text");
}

}  // namespace ckplan
