// ckplan check: replays a plan file by the independent checker.
#include <fmt/format.h>

#include "cli/ckplan/commands.h"
#include "cli/ckplan/plan_file.h"
#include "cli/ckplan/plan_summary.h"
#include "lib/emit/human_bytes.h"
#include "lib/emit/json_writer.h"
#include "lib/plan/check.h"

namespace ckplan {
namespace {

std::string CheckJson(const Plan& plan, const std::vector<std::string>& faults) {
  JsonWriter json;
  json.BeginObject(JsonLayout::kLines);
  json.Key("model").Text(plan.model.name);
  json.Key("algorithm").Text(plan.request.algorithm);
  json.Key("ok").Boolean(faults.empty());
  json.Key("peak_bytes").Amount(plan.figures.peak);
  json.Key("overhead_cost").Amount(plan.figures.overhead);
  json.Key("faults").BeginArray(JsonLayout::kLines);
  for (const std::string& fault : faults) json.Text(fault);
  json.End().End();
  return std::move(json).Finish();
}

std::string CheckText(const PlanFile& file) {
  const PlanFigures& figures = file.plan.figures;
  const auto step = static_cast<double>((figures.forward_cost + figures.backward_cost).count());
  const double overhead = step > 0 ? static_cast<double>(figures.overhead.count()) / step : 0;
  return fmt::format("ok   {}   {}   peak {}   time {} of a training step\n", file.plan.model.name,
                     file.plan.request.algorithm, HumanBytes(figures.peak),
                     SignedPercent(overhead));
}

Error CheckError(std::string_view plan_path, std::vector<std::string> faults) {
  constexpr size_t kShownFaults = 10;
  Error error = MakeError(ErrorCode::kCheckFailed,
                          fmt::format("{} does not pass the checker: {} fault{}", plan_path,
                                      faults.size(), faults.size() == 1 ? "" : "s"));
  if (faults.size() > kShownFaults) faults.resize(kShownFaults);
  error.notes = std::move(faults);
  return error;
}

}  // namespace

void AddCheckOptions(CommandLine& line, Options& options) {
  line.Positional("PLAN", "a plan file, or a model annotated with one", &options.plan);
  line.OptionalPositional("MODEL", "the model or graph.json of the plan (default: beside it)",
                          &options.source);
  AddCostOption(line, options);
  line.Choice("-f,--format", {"text", "json"}, "of what is printed", &options.format);
  AddScreenOptions(line, options);
}

Result<ExitCode> RunCheck(const Options& options, const Screen& screen) {
  Progress progress(screen.shows_progress);
  progress.Stage(fmt::format("reading {}", options.plan));
  CKPLAN_ASSIGN_OR_RETURN(const PlanFile file,
                          ReadPlanFile(options.plan, options.source, options.cost));
  progress.Clear();
  for (const std::string& warning : file.source.warnings) screen.Warn(warning);
  std::vector<std::string> faults = CheckPlan(file.source.graph, file.plan);
  if (options.format == "json") {
    CKPLAN_RETURN_IF_ERROR(screen.Print(CheckJson(file.plan, faults)));
  }
  if (!faults.empty()) return CheckError(options.plan, std::move(faults));
  if (options.format == "text" && !screen.is_quiet) {
    CKPLAN_RETURN_IF_ERROR(screen.Print(CheckText(file)));
  }
  return ExitCode::kOk;
}

}  // namespace ckplan
