// ckplan compare: one model, many algorithms, one table.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>
#include <vector>

#include "cli/ckplan/commands.h"
#include "cli/ckplan/plan_summary.h"
#include "cli/ckplan/planning.h"
#include "cli/common/interrupt.h"
#include "cli/common/size_arg.h"
#include "cli/common/text_table.h"
#include "lib/emit/human_bytes.h"
#include "lib/emit/json_compare.h"
#include "lib/schedule/simulate.h"
#include "lib/solvers/solver.h"

namespace ckplan {
namespace {

constexpr std::string_view kAll = "all";

struct Row : ComparedRow {
  std::optional<Error> error;
  double seconds = 0;
};

struct Comparison {
  Source source;
  Bytes baseline_peak;
  std::vector<Row> rows;
  bool shows_times = false;
};

// In the order of the registry, each once. kUsage for an unknown name.
Result<std::vector<const SolverInfo*>> AlgorithmsOf(const std::string& list) {
  std::set<std::string_view> wanted;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string_view name = std::string_view(list).substr(begin, end - begin);
    begin = end + 1;
    if (name == kAll) {
      for (const SolverInfo& info : AllSolvers()) wanted.insert(info.name);
      continue;
    }
    CKPLAN_ASSIGN_OR_RETURN(const SolverInfo* info, FindSolver(name));
    wanted.insert(info->name);
  }
  std::vector<const SolverInfo*> algorithms;
  for (const SolverInfo& info : AllSolvers()) {
    if (wanted.count(info.name) != 0) algorithms.push_back(&info);
  }
  return algorithms;
}

Row PlanBy(const SolverInfo& info, const Source& source, const PlannerRequest& request,
           const Interrupt& interrupt, const std::string& time_limit) {
  Row row;
  row.algorithm = info.name;
  row.guarantee = NameOf(info.guarantee);
  const auto start = std::chrono::steady_clock::now();
  Result<Plan> plan = MakePlan(source.graph, request, {interrupt.token()});
  row.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (plan.ok()) {
    Complete(source, &*plan);
    row.plan = std::move(plan).value();
    return row;
  }
  row.error = std::move(plan).error();
  row.failure =
      row.error->code == ErrorCode::kTimeout
          ? fmt::format("{} has no plan within the time limit of {}", info.name, time_limit)
          : row.error->message;
  return row;
}

double StepOverhead(const PlanFigures& figures) {
  const int64_t step = (figures.forward_cost + figures.backward_cost).count();
  return step == 0 ? 0 : static_cast<double>(figures.overhead.count()) / static_cast<double>(step);
}

double PaperOverhead(const PlanFigures& figures) {
  const int64_t forward = figures.forward_cost.count();
  return forward == 0
             ? 0
             : static_cast<double>(figures.paper.overhead.count()) / static_cast<double>(forward);
}

double Change(Bytes peak, Bytes baseline) {
  return baseline == Bytes(0) ? 0
                              : static_cast<double>((peak - baseline).count()) /
                                    static_cast<double>(baseline.count());
}

// A word or two; the whole of a failure stands below the table.
std::string StatusOf(const Row& row) {
  if (!row.plan) {
    switch (row.error->code) {
      case ErrorCode::kInfeasible:
        return "infeasible";
      case ErrorCode::kTimeout:
        return "too slow";
      case ErrorCode::kUnsupported:
        return "too large";
      default:
        return "no plan";
    }
  }
  const PlanFigures& figures = row.plan->figures;
  if (figures.peak > figures.baseline_peak) return "above keep-all";
  return figures.is_optimal ? "optimal" : "ok";
}

std::vector<std::string> CellsOf(const Row& row, Bytes baseline_peak) {
  std::vector<std::string> cells = {row.algorithm, row.guarantee};
  if (row.plan) {
    const PlanFigures& figures = row.plan->figures;
    cells.insert(cells.end(),
                 {HumanBytes(figures.peak), SignedPercent(Change(figures.peak, baseline_peak)),
                  SignedPercent(StepOverhead(figures)), HumanBytes(figures.arena),
                  HumanBytes(figures.paper.peak), SignedPercent(PaperOverhead(figures))});
  } else {
    cells.insert(cells.end(), 6, "-");
  }
  cells.push_back(StatusOf(row));
  return cells;
}

TextTable TableOf(const Comparison& comparison) {
  TextTable table;
  table.columns = {{"algorithm"},          {"guarantee"},      {"peak", true},
                   {"change", true},       {"time", true},     {"arena", true},
                   {"paper's peak", true}, {"its time", true}, {"status"}};
  for (const Row& row : comparison.rows) {
    table.rows.push_back(CellsOf(row, comparison.baseline_peak));
  }
  if (!comparison.shows_times) return table;
  table.columns.push_back({"solve", true});
  for (size_t i = 0; i < comparison.rows.size(); ++i) {
    table.rows[i].push_back(fmt::format("{:.2f} s", comparison.rows[i].seconds));
  }
  return table;
}

std::string CompareText(const Comparison& comparison) {
  const Source& source = comparison.source;
  std::string text =
      fmt::format("ckplan {}   {}\n", CKPLAN_VERSION, ModelLine(source.graph, source.identity));
  text += fmt::format("  keep all   peak {}   time 1.000 (cost model {})\n\n",
                      HumanBytes(comparison.baseline_peak), source.cost_model);
  text += TableOf(comparison).Text();
  std::string failures;
  for (const Row& row : comparison.rows) {
    if (!row.plan) failures += fmt::format("  {}\n", row.failure);
  }
  return failures.empty() ? text : text + "\nNo plan\n" + failures;
}

std::string CompareMarkdown(const Comparison& comparison) {
  TextTable table = TableOf(comparison);
  table.columns.push_back({"why there is no plan"});
  for (size_t i = 0; i < comparison.rows.size(); ++i) {
    table.rows[i].push_back(comparison.rows[i].failure);
  }
  return table.Markdown();
}

std::string CompareCsv(const Comparison& comparison) {
  TextTable table;
  table.columns = {{"algorithm"},        {"guarantee"},           {"status"},
                   {"peak_bytes"},       {"baseline_peak_bytes"}, {"arena_bytes"},
                   {"overhead_cost"},    {"forward_cost"},        {"backward_cost"},
                   {"paper_peak_bytes"}, {"paper_overhead_cost"}, {"failure"}};
  for (const Row& row : comparison.rows) {
    std::vector<std::string> cells = {row.algorithm, row.guarantee, StatusOf(row)};
    if (row.plan) {
      const PlanFigures& f = row.plan->figures;
      for (const int64_t number :
           {f.peak.count(), f.baseline_peak.count(), f.arena.count(), f.overhead.count(),
            f.forward_cost.count(), f.backward_cost.count(), f.paper.peak.count(),
            f.paper.overhead.count()}) {
        cells.push_back(std::to_string(number));
      }
    } else {
      cells.insert(cells.end(), 8, "");
    }
    cells.push_back(row.failure);
    table.rows.push_back(std::move(cells));
  }
  return table.Csv();
}

std::string Rendered(const Options& options, const Comparison& comparison) {
  if (options.format == "md") return CompareMarkdown(comparison);
  if (options.format == "csv") return CompareCsv(comparison);
  if (options.format == "text") return CompareText(comparison);
  const std::vector<ComparedRow> rows(comparison.rows.begin(), comparison.rows.end());
  return WriteCompareJson(comparison.source.identity, comparison.baseline_peak, rows);
}

Bytes BaselinePeak(const TensorGraph& graph) {
  std::vector<NodeId> order;
  for (const NodeId id : graph.nodes().ids()) order.push_back(id);
  return Simulator(graph).Run(KeepAllSchedule(order)).value().peak;
}

}  // namespace

void AddCompareOptions(CommandLine& line, Options& options) {
  line.Positional("MODEL", "an ONNX model, or a graph.json; - reads a graph.json from stdin",
                  &options.source);
  line.Value("-a,--algo", "NAME,...|all", "the algorithms (default all); see `ckplan algos`",
             &options.algorithm);
  AddPlanningOptions(line, options);
  line.Value("--time-limit", "TIME", "for each algorithm (default 10s); a slower one has no plan",
             &options.time_limit);
  AddSourceOptions(line, options);
  line.Choice("-f,--format", {"text", "json", "md", "csv"}, "of the table", &options.format);
  AddScreenOptions(line, options);
  line.Flag("-v,--verbose", "solve times, which a terminal shows anyway", &options.is_verbose);
}

Result<ExitCode> RunCompare(const Options& options, const Screen& screen) {
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<const SolverInfo*> algorithms,
                          AlgorithmsOf(options.algorithm.value_or(std::string(kAll))));
  CKPLAN_ASSIGN_OR_RETURN(PlannerRequest request,
                          PlannerRequestOf(options, std::string(kDefaultAlgorithm)));
  const std::string limit_text = options.time_limit.value_or("10s");
  CKPLAN_ASSIGN_OR_RETURN(const auto time_limit, ParseDuration(limit_text, "--time-limit"));
  CKPLAN_ASSIGN_OR_RETURN(const SourceRequest source_request,
                          SourceRequestOf(options, options.source));
  Progress progress(screen.shows_progress);
  progress.Stage(fmt::format("reading {}", options.source));
  CKPLAN_ASSIGN_OR_RETURN(Source source, LoadSource(source_request));
  Comparison comparison{std::move(source), Bytes(0), {}, false};
  progress.Clear();
  for (const std::string& warning : comparison.source.warnings) screen.Warn(warning);
  if (comparison.source.graph.nodes().empty()) {
    return MakePlan(comparison.source.graph, request, {}).error();
  }
  comparison.baseline_peak = BaselinePeak(comparison.source.graph);
  comparison.shows_times = options.format == "text" && (screen.out.is_tty || screen.is_verbose);
  for (const SolverInfo* info : algorithms) {
    progress.Stage(fmt::format("planning by {}", info->name));
    const Interrupt interrupt(time_limit);
    request.algorithm = info->name;
    comparison.rows.push_back(PlanBy(*info, comparison.source, request, interrupt, limit_text));
    if (interrupt.was_interrupted()) {
      progress.Clear();
      screen.Note("ckplan: interrupted; nothing was written");
      return ExitCode::kInterrupted;
    }
  }
  progress.Clear();
  CKPLAN_RETURN_IF_ERROR(screen.Print(Rendered(options, comparison)));
  const bool has_plan = std::any_of(comparison.rows.begin(), comparison.rows.end(),
                                    [](const Row& row) { return row.plan.has_value(); });
  return has_plan ? ExitCode::kOk : ExitCodeOf(comparison.rows.front().error->code);
}

}  // namespace ckplan
