// ckplan inspect: what a model consists of.
#include <fmt/format.h>

#include "cli/ckplan/commands.h"
#include "cli/ckplan/inspection.h"
#include "cli/ckplan/limits.h"

namespace ckplan {

void AddInspectOptions(CommandLine& line, Options& options) {
  line.Positionals("MODEL", "ONNX models or graph.json files, shown side by side",
                   &options.sources);
  options.request.Add(line, RequestFlags::Group::kReading);
  options.request.Add(line, "optimizer");
  line.Choice("-f,--format", {"text", "json", "md", "csv"}, "format of the output",
              &options.format);
  AddMemoryOption(line, options);
  AddScreenOptions(line, options);
}

Result<ExitCode> RunInspect(const Options& options, const Screen& screen) {
  CKPLAN_ASSIGN_OR_RETURN(const PlanRequest request, options.request.Read());
  std::vector<Inspection> inspections;
  Progress progress(screen.shows_progress);
  for (const std::string& path : options.sources) {
    progress.Stage(fmt::format("reading {}", path));
    CKPLAN_ASSIGN_OR_RETURN(const Source source, LoadSource(path, request));
    inspections.push_back(Inspect(source));
    progress.Clear();
    for (const std::string& warning : source.warnings) screen.Warn(warning);
  }
  const std::string text = options.format == "json"  ? InspectionJson(inspections)
                           : options.format == "md"  ? InspectionMarkdown(inspections)
                           : options.format == "csv" ? InspectionCsv(inspections)
                                                     : InspectionText(inspections, screen);
  CKPLAN_RETURN_IF_ERROR(screen.Print(text));
  return ExitCode::kOk;
}

}  // namespace ckplan
