#include "cli/ckbench/quality_command.h"

#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <optional>
#include <utility>

#include "cli/common/command_line.h"
#include "cli/common/request_flags.h"
#include "cli/common/terminal.h"
#include "cli/common/text_table.h"
#include "lib/planner/planner.h"
#include "lib/planner/registry.h"
#include "lib/planner/source.h"

namespace ckplan {
namespace {

// Per cent of the peak of keeping everything.
constexpr double kBudgets[] = {90, 80, 70, 60, 50, 40, 30, 20};

struct Request {
  std::vector<std::string> files;
  RequestFlags flags;
  bool has_others = false;
  std::string format = "text";
};

CommandLine MakeCommandLine(Request* request) {
  CommandLine line("ckbench quality",
                   "ckbench quality testdata/models/resnet50.onnx -D N=32 --format md",
                   "Plans by best at 90 to 20 % of the memory, and prints what that adds.");
  line.Positionals("FILE", "models, graphs or joint graphs", &request->files);
  request->flags.Add(line, "dims");
  request->flags.Add(line, "cost_model");
  request->flags.Add(line, "effort");
  line.Flag("--others", "also the best plan by any other algorithm", &request->has_others);
  line.Choice("-f,--format", {"text", "md"}, "format of the output", &request->format);
  return line;
}

// CPU seconds of this process since some moment.
double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double PercentOfStep(const Plan& plan, Cost cost) {
  const auto step =
      static_cast<double>((plan.figures.forward_cost + plan.figures.backward_cost).count());
  return step > 0 ? 100 * static_cast<double>(cost.count()) / step : 0;
}

std::string AddedText(const Result<Plan>& plan) {
  if (!plan.ok()) return plan.error().code == ErrorCode::kInfeasible ? "no plan" : "-";
  return fmt::format("{:.3f}", PercentOfStep(*plan, plan->figures.overhead));
}

std::string BoundText(const Result<Plan>& plan) {
  if (!plan.ok() || !plan->figures.lower_bound_cost) return "";
  return fmt::format("{:.3f}", PercentOfStep(*plan, *plan->figures.lower_bound_cost));
}

Result<Plan> PlanBy(std::string_view algorithm, const Source& source, const PlanRequest& request,
                    double percent) {
  PlanRequest own = request;
  own.algorithm = algorithm;
  own.budget = {Budget::Kind::kPercent, Bytes(0), percent};
  return MakePlan(source, own, {});
}

std::vector<std::string> MeasuredRow(const Source& source, const Request& request,
                                     const PlanRequest& wanted, double percent) {
  const double begin = CpuSeconds();
  const Result<Plan> best = PlanBy(kBestAlgorithm, source, wanted, percent);
  const double seconds = CpuSeconds() - begin;
  std::vector<std::string> row = {fmt::format("{}", percent), AddedText(best), BoundText(best),
                                  best.ok() && best->figures.is_optimal ? "yes" : "no"};
  if (request.has_others) row.push_back(AddedText(PlanBy(kAutoAlgorithm, source, wanted, percent)));
  row.push_back(fmt::format("{:.1f}", seconds));
  return row;
}

TextTable EmptyTable(bool has_others) {
  TextTable table;
  table.columns = {{.name = "graph"},
                   {.name = "ops", .is_number = true},
                   {.name = "budget %", .is_number = true},
                   {.name = "added %", .is_number = true},
                   {.name = "bound %", .is_number = true},
                   {.name = "optimal"}};
  if (has_others) table.columns.push_back({.name = "others %", .is_number = true});
  table.columns.push_back({.name = "CPU s", .is_number = true});
  return table;
}

}  // namespace

Result<ExitCode> RunQuality(std::vector<std::string> arguments) {
  Request request;
  CommandLine line = MakeCommandLine(&request);
  CKPLAN_ASSIGN_OR_RETURN(const CommandLine::Outcome outcome, line.Parse(std::move(arguments)));
  const Screen screen = DetectScreen("auto", /*is_quiet=*/false, /*has_no_progress=*/false);
  if (outcome == CommandLine::Outcome::kHelp) {
    CKPLAN_RETURN_IF_ERROR(screen.PrintHelp(line.Help()));
    return ExitCode::kOk;
  }
  CKPLAN_ASSIGN_OR_RETURN(const PlanRequest wanted, request.flags.Read());
  TextTable table = EmptyTable(request.has_others);
  Progress progress(screen.shows_progress);
  for (const std::string& path : request.files) {
    CKPLAN_ASSIGN_OR_RETURN(const Source source, LoadSource(path, wanted));
    for (const double percent : kBudgets) {
      progress.Stage(fmt::format("planning {} at {} %", path, percent));
      std::vector<std::string> row = MeasuredRow(source, request, wanted, percent);
      row.insert(row.begin(), {std::filesystem::path(path).stem().string(),
                               fmt::format("{}", NodeCount(source))});
      table.rows.push_back(std::move(row));
    }
  }
  progress.Clear();
  CKPLAN_RETURN_IF_ERROR(screen.Print(
      request.format == "md" ? table.Markdown() : table.Text(0, screen.out.table_width())));
  return ExitCode::kOk;
}

}  // namespace ckplan
