#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "cli/ckbench/commands.h"
#include "cli/common/request_flags.h"
#include "lib/files/input/load_source.h"
#include "lib/planning/planner/planner.h"
#include "lib/planning/planner/registry.h"
#include "lib/planning/planner/source.h"

namespace ckplan {
namespace {

Budget Percent(double percent) { return {Budget::Kind::kPercent, Bytes(0), percent}; }

const Budget kBudgetsOfModels[] = {Percent(90), Percent(80), Percent(70),
                                   Percent(60), Percent(50), Percent(40),
                                   Percent(30), Percent(20), {Budget::Kind::kMin, Bytes(0), 0}};

// The budgets at which published plans of these instances exist. Lower budgets follow.
const Budget kBudgetsOfInstances[] = {Percent(90), Percent(80), Percent(70),
                                      Percent(60), Percent(50), Percent(40)};

// The differences between the two commands.
struct Benchmark {
  const char* name;
  const char* example;
  const char* description;
  const char* files;
  std::span<const Budget> budgets;
};

constexpr Benchmark kQuality = {
    "ckbench quality", "ckbench quality testdata/models/resnet50.onnx -D N=32 --format md",
    "Plans with best at 90 to 20 % of the keep-all peak and at the minimum; prints the added time.",
    "models, graphs or joint graphs", kBudgetsOfModels};

constexpr Benchmark kInstances = {
    "ckbench instances", "ckbench instances rl1.json cm2_resnet50.json --effort thorough",
    "Plans joint graphs with best at 90 to 40 % of the keep-all peak; prints the added time.",
    "joint graphs (docs/quality.md lists the published ones)", kBudgetsOfInstances};

struct QualityRequest {
  std::vector<std::string> files;
  RequestFlags flags{Reading::kOperators};
  bool has_others = false;
  bool is_wide = false;
  std::string format = "text";
};

CommandLine QualityCommandLine(const Benchmark& benchmark, QualityRequest* request) {
  CommandLine line(benchmark.name, benchmark.example, benchmark.description);
  line.Positionals("FILE", benchmark.files, &request->files);
  request->flags.Add(line, "dims");
  request->flags.Add(line, "cost_model");
  request->flags.Add(line, "effort");
  line.Flag("--others", "also show the best plan of all other algorithms", &request->has_others);
  line.Flag("--wide", "print one row per file, with a column for each budget", &request->is_wide);
  line.Choice("-f,--format", {"text", "md"}, "output format", &request->format);
  return line;
}

double PercentOfStep(const Plan& plan, Cost cost) {
  const auto step =
      static_cast<double>((plan.figures.forward_cost + plan.figures.backward_cost).count());
  return step > 0 ? 100 * static_cast<double>(cost.count()) / step : 0;
}

double PercentOfKeepAll(const Plan& plan) {
  const auto all = static_cast<double>(plan.figures.baseline_peak.count());
  return all > 0 ? 100 * static_cast<double>(plan.figures.peak.count()) / all : 0;
}

// The values of a row that the summary needs, besides its text.
struct Measured {
  bool has_plan = false;
  bool is_optimal = false;
  std::optional<double> gap;  // The gap between plan and bound, in percent of a step.
};

Measured Measure(const Result<Plan>& plan) {
  if (!plan.ok()) return {};
  Measured measured = {.has_plan = true, .is_optimal = plan->figures.is_optimal, .gap = {}};
  if (plan->figures.lower_bound_cost) {
    measured.gap = PercentOfStep(*plan, plan->figures.overhead - *plan->figures.lower_bound_cost);
  }
  return measured;
}

std::string AddedText(const Result<Plan>& plan) {
  if (!plan.ok()) return plan.error().code == ErrorCode::kInfeasible ? "no plan" : "-";
  return fmt::format("{:.3f}", PercentOfStep(*plan, plan->figures.overhead));
}

std::string BoundText(const Result<Plan>& plan) {
  if (!plan.ok() || !plan->figures.lower_bound_cost) return "";
  return fmt::format("{:.3f}", PercentOfStep(*plan, *plan->figures.lower_bound_cost));
}

std::string BudgetText(const Budget& budget) {
  return budget.kind == Budget::Kind::kMin ? "min" : fmt::format("{}", budget.percent);
}

Result<Plan> PlanBy(std::string_view algorithm, const Source& source, const PlanRequest& request,
                    const Budget& budget) {
  PlanRequest own = request;
  own.algorithm = algorithm;
  own.budget = budget;
  return MakePlan(source, own, {});
}

// The result for one file at one budget.
struct Row {
  std::vector<std::string> cells;
  std::string wide_cell;
  std::string wide_cell_of_others;
  Measured measured;
  double seconds = 0;
};

// Returns the time that the plan adds, and in brackets by how much that could still fall, unless
// the plan is optimal. For the least budget, the cell begins with that budget's share of the
// memory.
std::string WideCell(const Result<Plan>& plan, const Measured& measured, const Budget& budget) {
  if (!plan.ok()) return "–";
  std::string cell = fmt::format("{:.2f}", PercentOfStep(*plan, plan->figures.overhead));
  if (!measured.is_optimal && measured.gap) cell += fmt::format(" (−{:.2f})", *measured.gap);
  if (budget.kind != Budget::Kind::kMin) return cell;
  return fmt::format("{:.1f} %: {}", PercentOfKeepAll(*plan), cell);
}

Row QualityRow(const Source& source, bool has_others, const PlanRequest& wanted,
               const Budget& budget) {
  const double begin = CpuSeconds();
  const Result<Plan> best = PlanBy(kBestAlgorithm, source, wanted, budget);
  Row row;
  row.seconds = CpuSeconds() - begin;
  row.measured = Measure(best);
  row.wide_cell = WideCell(best, row.measured, budget);
  row.cells = {BudgetText(budget), best.ok() ? fmt::format("{:.2f}", PercentOfKeepAll(*best)) : "",
               AddedText(best), BoundText(best), row.measured.is_optimal ? "yes" : "no"};
  if (has_others) {
    const Result<Plan> other = PlanBy(kAutoAlgorithm, source, wanted, budget);
    row.cells.push_back(AddedText(other));
    row.wide_cell_of_others = WideCell(other, {}, budget);
  }
  row.cells.push_back(fmt::format("{:.1f}", row.seconds));
  return row;
}

TextTable EmptyTable(bool has_others) {
  TextTable table;
  table.columns = {{.name = "graph"},
                   {.name = "ops", .is_number = true},
                   {.name = "budget %", .is_number = true},
                   {.name = "peak %", .is_number = true},
                   {.name = "added %", .is_number = true},
                   {.name = "bound %", .is_number = true},
                   {.name = "optimal"}};
  if (has_others) table.columns.push_back({.name = "others %", .is_number = true});
  table.columns.push_back({.name = "CPU s", .is_number = true});
  return table;
}

TextTable EmptyWideTable(std::span<const Budget> budgets) {
  TextTable table;
  table.columns = {{.name = "graph"}, {.name = "ops", .is_number = true}};
  for (const Budget& budget : budgets) {
    const bool is_least = budget.kind == Budget::Kind::kMin;
    table.columns.push_back(
        {.name = is_least ? "least" : BudgetText(budget) + " %", .is_number = true});
  }
  table.columns.push_back({.name = "CPU s", .is_number = true});
  return table;
}

// Returns one sentence about these rows: how many have a plan and a bound, and the gaps between
// them.
std::string SentenceOn(const std::vector<Measured>& rows, std::string_view what) {
  std::vector<double> gaps;
  size_t plans = 0;
  size_t optimal = 0;
  for (const Measured& row : rows) {
    plans += row.has_plan;
    optimal += row.is_optimal;
    if (row.gap) gaps.push_back(*row.gap);
  }
  std::string text =
      fmt::format("{} rows {}, {} with a plan, {} of them proven optimal in their order",
                  rows.size(), what, plans, optimal);
  if (gaps.empty()) return text + ".\n";
  std::sort(gaps.begin(), gaps.end());
  const auto within_one = std::upper_bound(gaps.begin(), gaps.end(), 1.0) - gaps.begin();
  return text + fmt::format(
                    "; {} with a bound: median gap {:.3f} % of a step, {:.1f} % of them "
                    "within 1 %, largest {:.3f} %.\n",
                    gaps.size(), gaps[gaps.size() / 2],
                    100.0 * static_cast<double>(within_one) / static_cast<double>(gaps.size()),
                    gaps.back());
}

// Computes the rows of a benchmark, file by file.
class Rows {
 public:
  Rows(const Benchmark& benchmark, const QualityRequest& request, PlanRequest wanted)
      : benchmark_(benchmark),
        request_(request),
        wanted_(std::move(wanted)),
        table_(request.is_wide ? EmptyWideTable(benchmark.budgets)
                               : EmptyTable(request.has_others)) {}

  Result<Done> Add(const std::string& path, Progress& progress) {
    CKPLAN_ASSIGN_OR_RETURN(const Source source, LoadSource(path, wanted_));
    const std::vector<std::string> head = {std::filesystem::path(path).stem().string(),
                                           fmt::format("{}", source.step().node_count())};
    std::vector<std::string> wide = head;
    std::vector<std::string> wide_of_others = {head[0] + ", others", head[1]};
    double seconds = 0;
    for (const Budget& budget : benchmark_.budgets) {
      progress.Stage(fmt::format("planning {} at {} %", path, BudgetText(budget)));
      Row row = QualityRow(source, request_.has_others, wanted_, budget);
      (budget.kind == Budget::Kind::kMin ? least_ : shares_).push_back(row.measured);
      wide.push_back(row.wide_cell);
      wide_of_others.push_back(row.wide_cell_of_others);
      seconds += row.seconds;
      row.cells.insert(row.cells.begin(), head.begin(), head.end());
      if (!request_.is_wide) table_.rows.push_back(std::move(row.cells));
    }
    wide.push_back(fmt::format("{:.1f}", seconds));
    wide_of_others.emplace_back();
    if (!request_.is_wide) return Done{};
    table_.rows.push_back(std::move(wide));
    if (request_.has_others) table_.rows.push_back(std::move(wide_of_others));
    return Done{};
  }

  const TextTable& table() const { return table_; }

  std::string Summary() const {
    const std::string shares = "\n" + SentenceOn(shares_, "at shares of the memory");
    return least_.empty() ? shares : shares + SentenceOn(least_, "at the least memory");
  }

 private:
  const Benchmark& benchmark_;
  const QualityRequest& request_;
  const PlanRequest wanted_;
  TextTable table_;
  std::vector<Measured> shares_;
  std::vector<Measured> least_;
};

Result<ExitCode> Run(const Benchmark& benchmark, std::vector<std::string> arguments) {
  QualityRequest request;
  CommandLine line = QualityCommandLine(benchmark, &request);
  const Screen screen = BenchScreen();
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<ExitCode> done,
                          ParseOrHelp(line, std::move(arguments), screen));
  if (done) return *done;
  CKPLAN_ASSIGN_OR_RETURN(const PlanRequest wanted, request.flags.Read());
  Rows rows(benchmark, request, wanted);
  Progress progress(screen.shows_progress);
  for (const std::string& path : request.files) CKPLAN_RETURN_IF_ERROR(rows.Add(path, progress));
  progress.Clear();
  CKPLAN_RETURN_IF_ERROR(PrintTable(rows.table(), request.format, screen, rows.Summary()));
  return ExitCode::kOk;
}

}  // namespace

Result<ExitCode> RunQuality(std::vector<std::string> arguments) {
  return Run(kQuality, std::move(arguments));
}

Result<ExitCode> RunInstances(std::vector<std::string> arguments) {
  return Run(kInstances, std::move(arguments));
}

}  // namespace ckplan
