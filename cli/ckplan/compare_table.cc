#include "cli/ckplan/compare_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "cli/ckplan/plan_summary.h"
#include "lib/planning/plan/knob.h"
#include "lib/planning/planner/peak_budget.h"
#include "lib/planning/planner/planner.h"
#include "lib/planning/planner/registry.h"

namespace ckplan {
namespace {

constexpr std::string_view kSolveColumn = "solve";

constexpr size_t kGuaranteeColumn = 1;
constexpr size_t kArenaColumn = 5;
constexpr size_t kPaperColumn = 6;  // Its time is in the next column.
// The gap is in the next column; both exist only if there are bounds.
constexpr size_t kBoundColumn = 8;

double ShareOfStep(Cost overhead, const PlanFigures& figures) {
  const int64_t step = (figures.forward_cost + figures.backward_cost).count();
  return step == 0 ? 0 : static_cast<double>(overhead.count()) / static_cast<double>(step);
}

double ChangeOf(Bytes peak, Bytes baseline) {
  return baseline == Bytes(0) ? 0
                              : static_cast<double>((peak - baseline).count()) /
                                    static_cast<double>(baseline.count());
}

// Why an algorithm cannot handle the request at all: the only usage error that affects a single
// row.
std::string MisfitOf(const PlanRequest& request, const SolverInfo& info, const Source& source) {
  if (info.name == kGivenAlgorithm && !request.decisions) return "no decisions";
  if (!CanPlan(info, source.step())) return "no joint graphs";
  const bool is_balanced = PeakBudgetOf(request).kind == Budget::Kind::kBalanced;
  if (is_balanced && (request.setting || info.name == kGivenAlgorithm)) return "one plan only";
  const bool takes_any_order = info.name == kBestAlgorithm || info.name == kGivenAlgorithm;
  if (request.order == StepOrder::kFree && !takes_any_order) return "model's order";
  if (request.setting) {
    const KnobInfo* const knob = InfoOf(info.knob);
    const bool has_knob = knob != nullptr && knob->name == request.setting->knob;
    return has_knob ? "out of range" : "no knob " + request.setting->knob;
  }
  return request.paper_budget.is_given() ? "no budget of its own" : "no memory objective";
}

// A few words for the table; the whole failure is printed below it.
std::string StatusTextOf(const AlgorithmRow& row, const Comparison& comparison) {
  const PlanRequest& request = comparison.request;
  if (row.min_budget) return "needs " + HumanBytes(*row.min_budget);
  if (!row.plan && row.error->code == ErrorCode::kUsage) {
    return MisfitOf(request, *row.info, *comparison.source);
  }
  if (row.plan && StatusWord(row) == kStoppedStatus) return std::string(kStoppedStatus);
  const bool keeps_all = row.plan && row.plan->figures.overhead == Cost(0);
  const bool has_budget = PeakBudgetOf(request).is_given() || request.paper_budget.is_given();
  if (keeps_all && !has_budget && row.info->guarantee != Guarantee::kBaseline) {
    const bool is_for_chains = row.info->graphs == GraphClass::kChainOfSplittingVertices;
    return is_for_chains && !comparison.has_cuts ? "nothing to cut" : "keeps all";
  }
  const bool is_status_ok = row.plan && StatusWord(row) != "above keep-all";
  if (is_status_ok && !SavesNothing(row.plan->figures).empty()) return "saves nothing";
  return std::string(StatusWord(row));
}

std::string_view ShortNameOf(Guarantee guarantee) {
  return guarantee == Guarantee::kOptimalInClass ? kProvenMark : NameOf(guarantee);
}

// The proven bound for a plan, and how far the plan is above it.
std::vector<std::string> BoundCells(const AlgorithmRow& row) {
  if (!row.plan || !row.plan->figures.lower_bound_cost) return {"-", "-"};
  const PlanFigures& f = row.plan->figures;
  const Cost bound = *f.lower_bound_cost;
  return {SignedPercent(ShareOfStep(bound, f)),
          fmt::format("{:.2f}%", 100 * ShareOfStep(f.overhead - bound, f))};
}

std::vector<std::string> CellsOf(const AlgorithmRow& row, const Comparison& comparison,
                                 const ByteUnit& unit, const CompareColumns& columns) {
  std::vector<std::string> cells = {row.algorithm, std::string(ShortNameOf(row.info->guarantee))};
  if (row.plan) {
    const PlanFigures& f = row.plan->figures;
    cells.insert(cells.end(),
                 {AmountIn(unit, f.peak), SignedPercent(ChangeOf(f.peak, comparison.baseline_peak)),
                  SignedPercent(ShareOfStep(f.overhead, f)), AmountIn(unit, f.arena),
                  AmountIn(unit, f.paper.peak), SignedPercent(ShareOfStep(f.paper.overhead, f))});
  } else {
    cells.insert(cells.end(), 6, "-");
  }
  if (columns.has_bounds) {
    for (std::string& cell : BoundCells(row)) cells.push_back(std::move(cell));
  }
  if (comparison.request.offload) {
    cells.push_back(row.plan ? AmountIn(unit, row.plan->figures.offload->host_peak) : "-");
  }
  cells.push_back(StatusTextOf(row, comparison));
  if (columns.has_times) cells.push_back(fmt::format("{:.2f} s", row.seconds));
  return cells;
}

}  // namespace

std::string_view StatusWord(const AlgorithmRow& row) {
  if (!row.plan) {
    switch (row.error->code) {
      case ErrorCode::kInfeasible:
        return "infeasible";
      case ErrorCode::kTimeout:
        return row.has_time_limit ? "time limit" : "work limit";
      case ErrorCode::kUnsupported:
        return "too large";
      default:
        return "no plan";
    }
  }
  const PlanFigures& figures = row.plan->figures;
  if (figures.guarantee.starts_with(kStoppedEarly)) return kStoppedStatus;
  if (figures.peak > figures.baseline_peak) return "above keep-all";
  if (row.info->guarantee == Guarantee::kBaseline) return "ok";
  return figures.is_optimal ? "optimal" : "ok";
}

bool HasBounds(const Comparison& comparison) {
  return std::any_of(comparison.rows.begin(), comparison.rows.end(), [](const AlgorithmRow& row) {
    return row.plan && row.plan->figures.certificate;
  });
}

bool HasStopped(const Comparison& comparison) {
  return std::any_of(comparison.rows.begin(), comparison.rows.end(), [](const AlgorithmRow& row) {
    return row.plan && StatusWord(row) == kStoppedStatus;
  });
}

bool HasProvenClass(const Comparison& comparison) {
  return std::any_of(comparison.rows.begin(), comparison.rows.end(), [](const AlgorithmRow& row) {
    return row.info->guarantee == Guarantee::kOptimalInClass;
  });
}

TextTable CompareTable(const Comparison& comparison, const ByteUnit& unit,
                       const CompareColumns& columns) {
  TextTable table;
  table.columns = {{"algorithm"},  {"guarantee"},   {"peak", true},  {"change", true},
                   {"time", true}, {"arena", true}, {"paper", true}, {"time", true}};
  if (columns.has_bounds) {
    table.columns.insert(table.columns.end(), {{"bound", true}, {"gap", true}});
  }
  if (comparison.request.offload) table.columns.push_back({"on host", true});
  table.columns.push_back({"status"});
  if (columns.has_times) table.columns.push_back({std::string(kSolveColumn), true});
  for (const AlgorithmRow& row : comparison.rows) {
    table.rows.push_back(CellsOf(row, comparison, unit, columns));
  }
  return table;
}

void MarkDroppable(TextTable* table, bool has_bounds, bool drops_paper, const Terminal& terminal) {
  const auto drop = [&](size_t column, int order) { table->columns[column].drop_order = order; };
  drop(kArenaColumn, 1);
  if (has_bounds || terminal.is_tty || drops_paper) drop(kGuaranteeColumn, 3);
  if (terminal.is_tty || drops_paper) {
    for (const size_t column : {kPaperColumn, kPaperColumn + 1}) drop(column, 2);
  }
  for (size_t column = kBoundColumn; terminal.is_tty && has_bounds && column < kBoundColumn + 2;
       ++column) {
    drop(column, 4);
  }
  // A table of solve times alone would otherwise follow below.
  const size_t last = table->columns.size() - 1;
  if (terminal.is_tty && table->columns[last].name == kSolveColumn) drop(last, 5);
}

std::string CompareLegend(std::string_view unit, std::string_view tables) {
  std::string text =
      fmt::format("sizes in {}; time: recomputation, as a share of a training step\n", unit);
  const auto shows = [&](std::string_view part) { return tables.find(part) != tables.npos; };
  if (shows("  paper  "))
    text += "paper: peak and time by the objective of the algorithm's own paper\n";
  if (shows("  bound  ")) {
    text +=
        "bound: the least time any plan, or any in the same order, can add; gap: this plan's time "
        "above it\n";
  }
  if (shows("  on host  ")) text += "on host: peak of the values on the host\n";
  if (shows(kStoppedStatus)) text += kStoppedNote;
  if (shows(kProvenMark)) text += kProvenNote;
  return text;
}

size_t TableWidth(const Terminal& terminal) {
  return terminal.is_tty ? terminal.table_width() : static_cast<size_t>(terminal.width);
}

void NamePaperColumns(TextTable* table) {
  table->columns[kPaperColumn].name = "paper peak";
  table->columns[kPaperColumn + 1].name = "paper time";
}

void KeepColumnsOfPapers(TextTable* table) {
  for (auto& row : table->rows) {
    if (std::find(row.begin(), row.end(), kStoppedStatus) == row.end()) continue;
    row.front() += fmt::format(" ({})", kStoppedStatus);
  }
  const std::set<std::string> shown = {"algorithm", "peak", "change", "time", "bound", "gap"};
  for (size_t c = table->columns.size(); c-- > 0;) {
    const bool is_by_paper = c == kPaperColumn || c == kPaperColumn + 1;
    if (shown.contains(table->columns[c].name) && !is_by_paper) continue;
    const auto at = static_cast<long>(c);
    table->columns.erase(table->columns.begin() + at);
    for (auto& row : table->rows) row.erase(row.begin() + at);
  }
}

void InsertColumn(TextTable* table, const TableColumn& column, std::vector<std::string> cells) {
  table->columns.insert(table->columns.begin(), column);
  for (size_t i = 0; i < table->rows.size(); ++i) {
    table->rows[i].insert(table->rows[i].begin(), std::move(cells[i]));
  }
}

}  // namespace ckplan
