// ckplan compare: one model, many algorithms, one table.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>
#include <vector>

#include "cli/ckplan/chain_remark.h"
#include "cli/ckplan/commands.h"
#include "cli/ckplan/limits.h"
#include "cli/ckplan/outputs.h"
#include "cli/ckplan/plan_summary.h"
#include "cli/ckplan/request_text.h"
#include "cli/common/memory_limit.h"
#include "cli/common/message.h"
#include "cli/common/size_arg.h"
#include "cli/common/text_table.h"
#include "lib/base/human_bytes.h"
#include "lib/base/printable.h"
#include "lib/emit/json_compare.h"
#include "lib/plan/knob.h"
#include "lib/plan/solver.h"
#include "lib/planner/peak_budget.h"
#include "lib/planner/planner.h"
#include "lib/schedule/simulate.h"

namespace ckplan {
namespace {

constexpr std::string_view kAll = "all";

struct Row : ComparedRow {
  const SolverInfo* info = nullptr;
  std::optional<Error> error;
  double seconds = 0;
};

struct Comparison {
  Source source;
  Bytes baseline_peak;
  PlanRequest request;
  bool has_cuts = false;  // Set for algorithms on chains.
  std::vector<Row> rows;
  bool shows_times = false;
};

// The algorithms in the order of the registry, each once; the request's own decisions are one row.
// Returns kUsage for an unknown name.
Result<std::vector<const SolverInfo*>> AlgorithmsOf(const std::string& list, bool has_decisions) {
  std::set<std::string_view> wanted;
  if (has_decisions) wanted.insert(kGivenAlgorithm);
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string_view name = std::string_view(list).substr(begin, end - begin);
    begin = end + 1;
    if (name == kAll) {
      for (const SolverInfo& info : AllSolvers()) wanted.insert(info.name);
      wanted.insert(kBestAlgorithm);
      continue;
    }
    CKPLAN_ASSIGN_OR_RETURN(const SolverInfo* info, FindSolver(name));
    wanted.insert(info->name);
  }
  std::vector<const SolverInfo*> algorithms;
  for (const SolverInfo* info : ListedAlgorithms()) {
    if (wanted.count(info->name) != 0) algorithms.push_back(info);
  }
  return algorithms;
}

// The smallest budget, of the requested kind, for which the algorithm has a plan.
std::optional<Bytes> MinBudget(const Source& source, PlanRequest request,
                               const SolveLimits& limits) {
  Budget& budget = request.paper_budget.is_given()   ? request.paper_budget
                   : request.total_budget.is_given() ? request.total_budget
                                                     : request.budget;
  budget.kind = Budget::Kind::kMin;
  const Result<Plan> plan = MakePlan(source, request, limits);
  if (!plan.ok()) return std::nullopt;
  if (request.paper_budget.is_given()) return plan->figures.paper.budget;
  const bool has_constants = request.total_budget.is_given();
  return plan->figures.peak + (has_constants ? TotalConstants(plan->figures) : Bytes(0));
}

// A row for each objective of an algorithm that has two, unless one is asked for.
std::vector<Objective> ObjectivesOf(const SolverInfo& info, const PlanRequest& request) {
  if (!info.takes_objective || request.objective != Objective::kAuto) return {request.objective};
  return {Objective::kTime, Objective::kMemory};
}

Row PlanBy(const SolverInfo& info, const Source& source, const PlanRequest& request,
           const Interrupt& interrupt, const std::string& time_limit) {
  Row row;
  row.info = &info;
  row.algorithm = info.name;
  if (request.objective == Objective::kMemory) row.algorithm += ":memory";
  row.guarantee = NameOf(info.guarantee);
  const auto start = std::chrono::steady_clock::now();
  Result<Plan> plan = MakePlan(source, request, {interrupt.token(), MemoryLimit()});
  row.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (plan.ok()) {
    row.plan = std::move(plan).value();
    row.budget = row.plan->request.budget.in_bytes();
    return row;
  }
  row.budget =
      BudgetInBytes(request, KeepAllPeak(source.step()), ConstantsInBudget(source.step(), request));
  row.error = std::move(plan).error();
  row.failure =
      row.error->code == ErrorCode::kTimeout
          ? fmt::format("{} has no plan within the time limit of {}", row.algorithm, time_limit)
          : MessageOf(*row.error);
  if (row.error->code == ErrorCode::kInfeasible) {
    row.min_budget = MinBudget(source, request, {interrupt.token(), MemoryLimit()});
  }
  return row;
}

double ShareOfStep(Cost overhead, const PlanFigures& figures) {
  const int64_t step = (figures.forward_cost + figures.backward_cost).count();
  return step == 0 ? 0 : static_cast<double>(overhead.count()) / static_cast<double>(step);
}

double Change(Bytes peak, Bytes baseline) {
  return baseline == Bytes(0) ? 0
                              : static_cast<double>((peak - baseline).count()) /
                                    static_cast<double>(baseline.count());
}

// The reason why an algorithm cannot serve the request at all: the only usage error that concerns a
// single row.
std::string MisfitOf(const PlanRequest& request, const SolverInfo& info, const Source& source) {
  if (info.name == kGivenAlgorithm && !request.decisions) return "no decisions";
  if (!CanPlan(info, source.step())) return "no joint graphs";
  const bool takes_any_order = info.name == kBestAlgorithm || info.name == kGivenAlgorithm;
  if (request.order == StepOrder::kFree && !takes_any_order) return "model's order";
  if (request.setting) {
    const KnobInfo* const knob = InfoOf(info.knob);
    const bool has_knob = knob != nullptr && knob->name == request.setting->knob;
    return has_knob ? "out of range" : "no knob " + request.setting->knob;
  }
  return request.paper_budget.is_given() ? "no budget of its own" : "no memory objective";
}

// One word, for programs.
std::string_view StatusWord(const Row& row) {
  if (!row.plan) {
    switch (row.error->code) {
      case ErrorCode::kInfeasible:
        return "infeasible";
      case ErrorCode::kTimeout:
        return "time limit";
      case ErrorCode::kUnsupported:
        return "too large";
      default:
        return "no plan";
    }
  }
  const PlanFigures& figures = row.plan->figures;
  if (figures.peak > figures.baseline_peak) return "above keep-all";
  if (row.info->guarantee == Guarantee::kBaseline) return "ok";
  return figures.is_optimal ? "optimal" : "ok";
}

// A few words for the table; the whole failure is printed below it.
std::string StatusText(const Row& row, const Comparison& comparison) {
  const PlanRequest& request = comparison.request;
  if (row.min_budget) return "needs " + HumanBytes(*row.min_budget);
  if (!row.plan && row.error->code == ErrorCode::kUsage) {
    return MisfitOf(request, *row.info, comparison.source);
  }
  const bool keeps_all = row.plan && row.plan->figures.overhead == Cost(0);
  const bool has_budget = request.budget.is_given() || request.total_budget.is_given() ||
                          request.paper_budget.is_given();
  if (keeps_all && !has_budget && row.info->guarantee != Guarantee::kBaseline) {
    const bool is_for_chains = row.info->graphs == GraphClass::kChainOfSplittingVertices;
    return is_for_chains && !comparison.has_cuts ? "nothing to cut" : "keeps all";
  }
  const bool is_status_ok = row.plan && StatusWord(row) != "above keep-all";
  if (is_status_ok && !SavesNothing(row.plan->figures).empty()) return "saves nothing";
  return std::string(StatusWord(row));
}

constexpr std::string_view kProvenMark = "optimal*";

std::string_view ShortNameOf(Guarantee guarantee) {
  return guarantee == Guarantee::kOptimalInClass ? kProvenMark : NameOf(guarantee);
}

constexpr size_t kGuaranteeColumn = 1;
constexpr size_t kArenaColumn = 5;
constexpr size_t kPaperColumn = 6;  // Its time is in the next column.
// The gap is in the next column; both exist only if there are bounds.
constexpr size_t kBoundColumn = 8;

bool HasBounds(const Comparison& comparison) {
  return std::any_of(comparison.rows.begin(), comparison.rows.end(),
                     [](const Row& row) { return row.plan && row.plan->figures.certificate; });
}

// The proven bound for a plan, and how far the plan is above it.
std::vector<std::string> BoundCells(const Row& row) {
  if (!row.plan || !row.plan->figures.lower_bound_cost) return {"-", "-"};
  const PlanFigures& f = row.plan->figures;
  const Cost bound = *f.lower_bound_cost;
  return {SignedPercent(ShareOfStep(bound, f)),
          fmt::format("{:.2f}%", 100 * ShareOfStep(f.overhead - bound, f))};
}

// All sizes have one unit, which saves the width of the unit's name in each column.
TextTable TableOf(const Comparison& comparison, const ByteUnit& unit) {
  TextTable table;
  table.columns = {{"algorithm"},  {"guarantee"},   {"peak", true},  {"change", true},
                   {"time", true}, {"arena", true}, {"paper", true}, {"time", true}};
  const bool has_bounds = HasBounds(comparison);
  if (has_bounds) table.columns.insert(table.columns.end(), {{"bound", true}, {"gap", true}});
  table.columns.push_back({"status"});
  for (const Row& row : comparison.rows) {
    std::vector<std::string> cells = {row.algorithm, std::string(ShortNameOf(row.info->guarantee))};
    if (row.plan) {
      const PlanFigures& f = row.plan->figures;
      cells.insert(cells.end(),
                   {AmountIn(unit, f.peak), SignedPercent(Change(f.peak, comparison.baseline_peak)),
                    SignedPercent(ShareOfStep(f.overhead, f)), AmountIn(unit, f.arena),
                    AmountIn(unit, f.paper.peak), SignedPercent(ShareOfStep(f.paper.overhead, f))});
    } else {
      cells.insert(cells.end(), 6, "-");
    }
    if (has_bounds) {
      for (std::string& cell : BoundCells(row)) cells.push_back(std::move(cell));
    }
    cells.push_back(StatusText(row, comparison));
    if (comparison.shows_times) cells.push_back(fmt::format("{:.2f} s", row.seconds));
    table.rows.push_back(std::move(cells));
  }
  if (comparison.shows_times) table.columns.push_back({"solve", true});
  return table;
}

bool HasProvenClass(const Comparison& comparison) {
  return std::any_of(comparison.rows.begin(), comparison.rows.end(), [](const Row& row) {
    return row.info->guarantee == Guarantee::kOptimalInClass;
  });
}

constexpr std::string_view kFootnote =
    "* for that objective, in its class of plans; see docs/algorithms.md\n";

// The table as text. The arena is the least important column; a narrow terminal may have room only
// for the peak and the time.
std::string Fitted(TextTable table, bool has_bounds, const Terminal& terminal) {
  const auto drop = [&](size_t column, int order) { table.columns[column].drop_order = order; };
  drop(kArenaColumn, 1);
  if (has_bounds || terminal.is_tty) drop(kGuaranteeColumn, 3);
  if (terminal.is_tty) {
    for (const size_t column : {kPaperColumn, kPaperColumn + 1}) drop(column, 2);
    for (size_t column = kBoundColumn; has_bounds && column < kBoundColumn + 2; ++column) {
      drop(column, 4);
    }
  }
  return table.Text(0,
                    terminal.is_tty ? terminal.table_width() : static_cast<size_t>(terminal.width));
}

// Explains the table as it is shown.
std::string Legend(const Comparison& comparison, const ByteUnit& unit, std::string_view shown) {
  std::string text = fmt::format(
      "sizes in {}; time: recomputation, as a share of a training step\n"
      "paper: peak and time by the objective of the algorithm's own paper\n",
      unit.name);
  if (HasBounds(comparison)) {
    text +=
        "bound: the least time that a plan, or one in the same order, can add; gap: this plan's "
        "time above it\n";
  }
  if (shown.find(kProvenMark) != std::string_view::npos) text += kFootnote;
  return text;
}

std::string CompareText(const Comparison& comparison, const Terminal& terminal) {
  const Source& source = comparison.source;
  std::string text =
      fmt::format("ckplan {}   {}\n", CKPLAN_VERSION, ModelLine(source, source.request));
  text += fmt::format("  keep all   peak {}   time 1.000 (cost model {})\n\n",
                      HumanBytes(comparison.baseline_peak), source.request.cost_model);
  const ByteUnit unit = UnitOf(comparison.baseline_peak);
  const std::string shown = Fitted(TableOf(comparison, unit), HasBounds(comparison), terminal);
  text += shown + "\n" + Legend(comparison, unit, shown);
  std::string failures;
  std::set<std::string> reported;  // Two rows of one algorithm may fail alike.
  for (const Row& row : comparison.rows) {
    if (row.plan || !reported.insert(row.failure).second) continue;
    failures += fmt::format("  {}\n", PrintableMessage(row.failure));
  }
  return failures.empty() ? text : text + "\nNo plan\n" + failures;
}

std::string CompareMarkdown(const Comparison& comparison) {
  const ByteUnit unit = UnitOf(comparison.baseline_peak);
  TextTable table = TableOf(comparison, unit);
  table.columns[kPaperColumn].name = "paper peak";
  table.columns[kPaperColumn + 1].name = "paper time";
  table.columns.push_back({"why there is no plan"});
  for (size_t i = 0; i < comparison.rows.size(); ++i) {
    table.rows[i].push_back(comparison.rows[i].failure);
  }
  return table.Markdown() +
         fmt::format("\nSizes in {}; times as shares of a training step.\n", unit.name) +
         (HasProvenClass(comparison) ? "\n\\" + std::string(kFootnote) : "");
}

// The columns that a paper prints; sizes are in the unit that the first line names.
std::string CompareLatex(const Comparison& comparison) {
  const ByteUnit unit = UnitOf(comparison.baseline_peak);
  TextTable table = TableOf(comparison, unit);
  const std::set<std::string> shown = {"algorithm", "peak", "change", "time", "bound", "gap"};
  for (size_t c = table.columns.size(); c-- > 0;) {
    const bool is_of_paper = c == kPaperColumn || c == kPaperColumn + 1;
    if (shown.contains(table.columns[c].name) && !is_of_paper) continue;
    const auto at = static_cast<long>(c);
    table.columns.erase(table.columns.begin() + at);
    for (auto& row : table.rows) row.erase(row.begin() + at);
  }
  return fmt::format("% {}; sizes in {}, times as shares of a training step\n",
                     ModelLine(comparison.source, comparison.source.request), unit.name) +
         table.Latex();
}

std::string CompareCsv(const Comparison& comparison) {
  const PlanRequest& request = comparison.source.request;
  TextTable table;
  table.columns = {{"model"}, {"dims"}};
  const std::vector<std::string> subject = {comparison.source.identity.name,
                                            DimsCell(request.dims)};
  for (const char* const name :
       {"algorithm", "guarantee", "status", "cost_model", "cost_unit", "budget_bytes", "peak_bytes",
        "baseline_peak_bytes", "arena_bytes", "overhead_cost", "forward_cost", "backward_cost",
        "paper_peak_bytes", "paper_overhead_cost", "lower_bound_cost", "gap_cost", "bound_scope",
        "least_bytes", "failure"}) {
    table.columns.push_back({name});
  }
  const auto rest = RequestCells(request);
  for (const auto& [name, value] : rest) table.columns.push_back({name});
  for (const Row& row : comparison.rows) {
    std::vector<std::string> cells = subject;
    cells.insert(cells.end(),
                 {row.algorithm, row.guarantee, std::string(StatusWord(row)), request.cost_model,
                  request.cost_unit, row.budget ? std::to_string(row.budget->count()) : ""});
    if (row.plan) {
      const PlanFigures& f = row.plan->figures;
      for (const int64_t number :
           {f.peak.count(), f.baseline_peak.count(), f.arena.count(), f.overhead.count(),
            f.forward_cost.count(), f.backward_cost.count(), f.paper.peak.count(),
            f.paper.overhead.count()}) {
        cells.push_back(std::to_string(number));
      }
      const bool has_bound = f.lower_bound_cost.has_value();
      cells.push_back(has_bound ? std::to_string(f.lower_bound_cost->count()) : "");
      cells.push_back(has_bound ? std::to_string((f.overhead - *f.lower_bound_cost).count()) : "");
      cells.emplace_back(f.certificate ? NameOf(f.certificate->scope) : "");
    } else {
      cells.insert(cells.end(), 11, "");
    }
    cells.push_back(row.min_budget ? std::to_string(row.min_budget->count()) : "");
    cells.push_back(row.failure);
    for (const auto& [name, value] : rest) cells.push_back(value);
    table.rows.push_back(std::move(cells));
  }
  return table.Csv();
}

std::string CompareJson(const Comparison& comparison) {
  const Source& source = comparison.source;
  const std::vector<ComparedRow> rows(comparison.rows.begin(), comparison.rows.end());
  return WriteCompareJson({source.identity, source.request, comparison.baseline_peak}, rows);
}

std::string Rendered(const Comparison& comparison, std::string_view format, const Screen& screen) {
  if (format == "md") return CompareMarkdown(comparison);
  if (format == "csv") return CompareCsv(comparison);
  if (format == "latex") return CompareLatex(comparison);
  if (format == "text") return CompareText(comparison, screen.out);
  return CompareJson(comparison);
}

// The user's time limit covers reading as well. Returns nothing if Ctrl-C has ended it.
Result<std::optional<Source>> Read(const Options& options, const PlanRequest& request) {
  CKPLAN_ASSIGN_OR_RETURN(const auto time_limit, TimeLimitOf(options));
  const Interrupt interrupt(time_limit);
  Result<Source> source = LoadInTime(options.source, request, options);
  if (interrupt.was_interrupted()) return std::optional<Source>();
  if (!source.ok()) return std::move(source).error();
  return std::optional(std::move(source).value());
}

}  // namespace

void AddCompareOptions(CommandLine& line, Options& options) {
  line.Positional("MODEL", "an ONNX model, or a graph.json; - reads a graph.json from stdin",
                  &options.source);
  line.Value("-a,--algo", "NAME,...|all", "the algorithms (default all); see `ckplan algos`",
             &options.algorithms);
  options.request.Add(line, "decisions", "", "add a row for your own: what to keep, or an order");
  options.request.Add(line, RequestFlags::Group::kPlanning);
  line.Value("--time-limit", "TIME",
             "limit for each algorithm (default 10s); a slower one has no plan",
             &options.time_limit);
  AddMemoryOption(line, options);
  options.request.Add(line, RequestFlags::Group::kReading);
  line.Value("-o,--output", "FILE", "write the JSON there; - is standard output", &options.output);
  line.Choice("-f,--format", {"text", "json", "md", "csv", "latex"}, "format of the table",
              &options.format);
  AddScreenOptions(line, options);
  line.Flag("-v,--verbose", "show solve times, which a terminal shows anyway", &options.is_verbose);
}

Result<ExitCode> RunCompare(const Options& options, const Screen& screen) {
  CKPLAN_ASSIGN_OR_RETURN(PlanRequest request, options.request.Read());
  CKPLAN_ASSIGN_OR_RETURN(
      const std::vector<const SolverInfo*> algorithms,
      AlgorithmsOf(options.algorithms.value_or(std::string(kAll)), request.decisions.has_value()));
  const std::string limit_text = options.time_limit.value_or("10s");
  CKPLAN_ASSIGN_OR_RETURN(const auto time_limit, ParseDuration(limit_text, "--time-limit"));
  CKPLAN_ASSIGN_OR_RETURN(const Outputs outputs,
                          Outputs::Create(options, "json", EmitSubject::kPlan));
  Progress progress(screen.shows_progress);
  progress.Stage(fmt::format("reading {}", options.source));
  CKPLAN_ASSIGN_OR_RETURN(std::optional<Source> source, Read(options, request));
  progress.Clear();
  if (!source) return Interrupted();
  Comparison comparison{*std::move(source), Bytes(0), request, false, {}, false};
  for (const std::string& warning : comparison.source.warnings) screen.Warn(warning);
  if (comparison.source.step().node_count() == 0) {
    return MakePlan(comparison.source.graph, request, {}).error();
  }
  comparison.baseline_peak = KeepAllPeak(comparison.source.step());
  comparison.has_cuts = CanBeCut(comparison.source.graph);
  comparison.shows_times = options.format == "text" && (screen.out.is_tty || screen.is_verbose);
  for (const SolverInfo* info : algorithms) {
    // Takes all algorithms that can plan the graph; one that was named reports itself that it
    // cannot.
    if (!options.algorithms && !CanPlan(*info, comparison.source.step())) continue;
    for (const Objective objective : ObjectivesOf(*info, request)) {
      progress.Stage(fmt::format("planning by {}", info->name));
      const Interrupt interrupt(time_limit);
      PlanRequest own = request;
      own.algorithm = info->name;
      own.objective = objective;
      if (own.algorithm != kGivenAlgorithm) own.decisions.reset();
      comparison.rows.push_back(PlanBy(*info, comparison.source, own, interrupt, limit_text));
      if (!interrupt.was_interrupted()) continue;
      progress.Clear();
      return Interrupted();
    }
  }
  progress.Clear();
  CKPLAN_RETURN_IF_ERROR(ReportTable(options, outputs, screen, [&](std::string_view format) {
    return Rendered(comparison, format, screen);
  }));
  const bool has_plan = std::any_of(comparison.rows.begin(), comparison.rows.end(),
                                    [](const Row& row) { return row.plan.has_value(); });
  const std::string hint = options.request.BareBudgetHint(comparison.baseline_peak);
  if (!has_plan && !hint.empty()) screen.Note(hint);
  if (has_plan) return ExitCode::kOk;
  const Error& first = *comparison.rows.front().error;
  // The table has it already, for people.
  if (CurrentMessageForm() == MessageForm::kJson) return first;
  return ExitCodeOf(first.code);
}

}  // namespace ckplan
