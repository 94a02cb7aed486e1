#include "cli/ckplan/compare_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/ckplan/compare_table.h"
#include "cli/ckplan/plan_summary.h"
#include "cli/ckplan/request_text.h"
#include "cli/common/request_flags.h"
#include "cli/common/text_table.h"
#include "lib/base/text.h"

namespace ckplan {

std::string CompareHead(const Comparison& comparison, const Terminal& terminal) {
  const PlanRequest& request = comparison.source->request;
  constexpr size_t kLabelWidth = 11;
  return Folded(fmt::format("ckplan {}   {}\n  keep all   peak {}   time 1.000 (cost model {})\n{}",
                            CKPLAN_VERSION, ModelLine(*comparison.source, request),
                            HumanBytes(comparison.baseline_peak), request.cost_model,
                            LinkLine(request, kLabelWidth)),
                terminal.table_width());
}

std::string NoPlanText(const std::vector<std::string>& reasons, const Terminal& terminal) {
  if (reasons.empty()) return "";
  constexpr size_t kIndent = 2;
  std::string text = "\nNo plan\n";
  for (const std::string& reason : reasons) {
    for (const std::string& line : Wrapped(reason, terminal.table_width() - kIndent)) {
      text += fmt::format("{:{}}{}\n", "", kIndent, line);
    }
  }
  return text;
}

std::string CompareText(const Comparison& comparison, bool shows_times, const Terminal& terminal) {
  const ByteUnit unit = UnitOf(comparison.baseline_peak);
  const bool has_bounds = HasBounds(comparison);
  TextTable table = CompareTable(comparison, unit, {has_bounds, shows_times});
  MarkDroppable(&table, has_bounds, /*drops_paper=*/false, terminal);
  const std::string shown = table.Text(0, TableWidth(terminal));
  std::vector<std::string> reasons;
  std::set<std::string> reported;  // Two rows of one algorithm may fail in the same way.
  for (const AlgorithmRow& row : comparison.rows) {
    const bool is_new = !row.plan && reported.insert(row.failure).second;
    if (is_new) reasons.push_back(PrintableMessage(row.failure));
  }
  return CompareHead(comparison, terminal) + "\n" + shown + "\n" +
         Folded(CompareLegend(unit.name, shown), terminal.table_width()) +
         NoPlanText(reasons, terminal);
}

std::string CompareMarkdown(const Comparison& comparison) {
  const ByteUnit unit = UnitOf(comparison.baseline_peak);
  TextTable table = CompareTable(comparison, unit, {HasBounds(comparison)});
  NamePaperColumns(&table);
  table.columns.push_back({"why there is no plan"});
  for (size_t i = 0; i < comparison.rows.size(); ++i) {
    table.rows[i].push_back(comparison.rows[i].failure);
  }
  return table.Markdown() +
         fmt::format("\nSizes in {}; times as shares of a training step.\n", unit.name) +
         (HasStopped(comparison) ? "\n" + std::string(kStoppedNote) : "") +
         (HasProvenClass(comparison) ? "\n\\" + std::string(kProvenNote) : "");
}

// Sizes are in the unit that the first line names.
std::string CompareLatex(const Comparison& comparison) {
  const ByteUnit unit = UnitOf(comparison.baseline_peak);
  TextTable table = CompareTable(comparison, unit, {HasBounds(comparison)});
  KeepColumnsOfPapers(&table);
  return fmt::format("% {}; sizes in {}, times as shares of a training step\n",
                     ModelLine(*comparison.source, comparison.source->request), unit.name) +
         table.Latex();
}

namespace {

using Lines = std::vector<std::string>;

bool AnyComparison(const ComparisonSet& set, bool (*holds)(const Comparison&)) {
  return std::any_of(set.all.begin(), set.all.end(), holds);
}

bool HasNeeds(const Comparison& comparison) {
  return std::any_of(comparison.rows.begin(), comparison.rows.end(),
                     [](const AlgorithmRow& row) { return row.min_budget.has_value(); });
}

// Returns the unit of all tables, or nothing if they have different ones.
std::optional<ByteUnit> CommonUnit(const ComparisonSet& set) {
  std::optional<ByteUnit> unit;
  for (const Comparison& comparison : set.all) {
    if (comparison.unread) continue;
    const ByteUnit model_unit = UnitOf(comparison.baseline_peak);
    if (unit && unit->shift != model_unit.shift) return std::nullopt;
    unit = model_unit;
  }
  return unit;
}

// "x.onnx, N=8", for a heading.
std::string SubjectOf(const Comparison& comparison) {
  std::string text = Printable(comparison.model, kLongestName);
  for (const auto& [name, size] : comparison.dims) {
    text += fmt::format(", {}={}", Printable(name, kLongestName), size);
  }
  return text;
}

// ---- Why there is no plan ----

// Returns the row of the least budget with a plan, if no algorithm has a plan within this budget;
// otherwise, or if no least budget is known, returns null.
const AlgorithmRow* FindCheapestUnmet(const Comparison& comparison, const std::string& budget) {
  const AlgorithmRow* least = nullptr;
  for (const AlgorithmRow& row : comparison.rows) {
    if (row.budget_text != budget) continue;
    if (row.plan) return nullptr;
    if (row.min_budget && (least == nullptr || *row.min_budget < *least->min_budget)) least = &row;
  }
  return least;
}

// Returns a sentence on the budgets that no algorithm meets; "" if there are none.
std::string UnmetBudgets(const ComparisonSet& set, const Comparison& comparison) {
  const AlgorithmRow* least = nullptr;
  Lines unmet;
  for (const std::string& budget : set.budgets) {
    const AlgorithmRow* const row = FindCheapestUnmet(comparison, budget);
    if (row == nullptr) continue;
    const bool is_share = set.budget_field == "budget" && budget.ends_with('%') && row->budget;
    unmet.push_back(is_share ? fmt::format("{} ({})", budget, HumanBytes(*row->budget)) : budget);
    if (least == nullptr || *row->min_budget < *least->min_budget) least = row;
  }
  if (least == nullptr) return "";
  const std::string flag = FlagOf(set.budget_field);
  return fmt::format("no algorithm has a plan within {} {}; the least is {}, by {}; try {} {}",
                     flag, fmt::join(unmet, " or "), HumanBytes(*least->min_budget),
                     least->algorithm, flag, least->min_budget->count());
}

// Returns sentences on budgets that no algorithm meets, and on algorithms without a known least
// budget; skips those already reported.
Lines NoPlanLines(const ComparisonSet& set, const Comparison& comparison,
                  std::set<std::string>* reported) {
  Lines lines;
  std::string unmet = UnmetBudgets(set, comparison);
  if (!unmet.empty()) lines.push_back(std::move(unmet));
  for (const AlgorithmRow& row : comparison.rows) {
    const bool is_new = !row.plan && !row.min_budget && reported->insert(row.failure).second;
    if (is_new) lines.push_back(PrintableMessage(row.failure));
  }
  return lines;
}

// ---- Text and Markdown ----

Lines BudgetCells(const Comparison& comparison) {
  Lines cells;
  for (const AlgorithmRow& row : comparison.rows) cells.push_back(row.budget_text);
  return cells;
}

// The table for one model, with the budgets in front if there are several.
TextTable AddBudgetColumn(TextTable table, const ComparisonSet& set, const Comparison& comparison) {
  if (!set.has_several_budgets()) return table;
  InsertColumn(&table, {set.BudgetHeading(), true}, BudgetCells(comparison));
  return table;
}

// The tables of all models, with the same columns.
class AlignedTables {
 public:
  AlignedTables(const ComparisonSet& set, const Terminal& terminal) : width_(TableWidth(terminal)) {
    const bool has_bounds = AnyComparison(set, HasBounds);
    for (const Comparison& comparison : set.all) {
      if (comparison.unread) continue;
      TextTable table =
          CompareTable(comparison, UnitOf(comparison.baseline_peak), {has_bounds, set.shows_times});
      MarkDroppable(&table, has_bounds, /*drops_paper=*/true, terminal);
      table = AddBudgetColumn(std::move(table), set, comparison);
      all_.columns = table.columns;
      for (auto& row : table.rows) all_.rows.push_back(std::move(row));
    }
    const std::string text = all_.Text(0, width_);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = text.find('\n', begin) + 1;
      lines_.push_back(text.substr(begin, end - begin));
      begin = end;
    }
  }

  // Returns the next `rows` rows as one model's table.
  std::string Take(size_t rows) {
    const size_t first = taken_;
    taken_ += rows;
    // The joint table was too wide and wrapped, so each model gets a layout of its own.
    if (lines_.size() != all_.rows.size() + 1) {
      const auto begin = all_.rows.begin() + static_cast<long>(first);
      const TextTable model_table = {all_.columns, {begin, begin + static_cast<long>(rows)}};
      return model_table.Text(0, width_);
    }
    std::string text = lines_.front();
    for (size_t row = first; row < taken_; ++row) text += lines_[row + 1];
    return text;
  }

 private:
  size_t width_;
  TextTable all_;
  std::vector<std::string> lines_;
  size_t taken_ = 0;
};

std::string TextBlock(const ComparisonSet& set, const Comparison& comparison,
                      const std::string& table, const Terminal& terminal,
                      std::set<std::string>* reported) {
  if (comparison.unread) {
    return fmt::format("ckplan {}   {}\n  failed to load (see standard error)\n", CKPLAN_VERSION,
                       SubjectOf(comparison));
  }
  return CompareHead(comparison, terminal) + "\n" + table +
         NoPlanText(NoPlanLines(set, comparison, reported), terminal);
}

std::string MarkdownBlock(const ComparisonSet& set, const Comparison& comparison,
                          std::set<std::string>* reported) {
  std::string text = fmt::format("### {}\n\n", SubjectOf(comparison));
  if (comparison.unread) {
    return text + fmt::format("Not read: {}\n", PrintableMessage(MessageOf(*comparison.unread)));
  }
  const ByteUnit unit = UnitOf(comparison.baseline_peak);
  text += fmt::format("Keep all: peak {}, cost model {}. Sizes in {}.\n\n",
                      HumanBytes(comparison.baseline_peak), comparison.source->request.cost_model,
                      unit.name);
  TextTable table = CompareTable(comparison, unit, {HasBounds(comparison)});
  NamePaperColumns(&table);
  text += AddBudgetColumn(std::move(table), set, comparison).Markdown();
  const Lines lines = NoPlanLines(set, comparison, reported);
  if (!lines.empty()) text += "\n";
  for (const std::string& line : lines) text += fmt::format("- {}\n", line);
  return text;
}

constexpr std::string_view kNeedsNote =
    "needs: the least budget for which the algorithm has a plan";

// Explains the tables' columns.
std::string LegendOf(const ComparisonSet& set, std::string_view tables) {
  const std::optional<ByteUnit> unit = CommonUnit(set);
  const std::string text =
      CompareLegend(unit ? unit->name : "the unit of the model's keep all", tables);
  return AnyComparison(set, HasNeeds) ? text + fmt::format("{}\n", kNeedsNote) : text;
}

// ---- LaTeX ----

// What the rows of a table for a paper are about; a column that all rows leave empty is left out.
class LatexTable {
 public:
  explicit LatexTable(const ComparisonSet& set) : set_(set), unit_(CommonUnit(set)) {
    for (const Comparison& comparison : set.all) {
      has_bounds_ = has_bounds_ || HasBounds(comparison);
      has_dims_ = has_dims_ || !comparison.dims.empty();
    }
    for (const Comparison& comparison : set.all) Append(comparison);
  }

  std::string Text() const { return table_.rows.empty() ? "" : table_.Latex(rules_); }

 private:
  void Append(const Comparison& comparison) {
    if (comparison.unread) return;
    const ByteUnit unit = UnitOf(comparison.baseline_peak);
    TextTable table = CompareTable(comparison, unit, {has_bounds_});
    KeepColumnsOfPapers(&table);
    NamePeaks(unit, &table);
    if (set_.has_several_budgets()) {
      InsertColumn(&table, {set_.BudgetHeading(), true}, BudgetLines(comparison));
    }
    if (has_dims_) InsertColumn(&table, {"size"}, FillFirstRow(table, DimsText(comparison)));
    const bool is_new = comparison.model != last_model_;
    InsertColumn(&table, {"model"}, FillFirstRow(table, is_new ? comparison.model : ""));
    if (is_new && !table_.rows.empty()) rules_.insert(table_.rows.size());
    last_model_ = comparison.model;
    table_.columns = table.columns;
    for (auto& row : table.rows) table_.rows.push_back(std::move(row));
  }

  // Peaks of one unit have it in the heading, others in each cell.
  void NamePeaks(const ByteUnit& unit, TextTable* own) const {
    for (size_t c = 0; c < own->columns.size(); ++c) {
      if (own->columns[c].name != "peak") continue;
      if (unit_) own->columns[c].name += fmt::format(" ({})", unit.name);
      for (auto& row : own->rows) {
        if (!unit_ && row[c] != "-") row[c] += " " + unit.name;
      }
    }
  }

  static Lines BudgetLines(const Comparison& comparison) {
    Lines cells;
    std::string last;
    for (const AlgorithmRow& row : comparison.rows) {
      cells.push_back(row.budget_text == last ? "" : row.budget_text);
      last = row.budget_text;
    }
    return cells;
  }

  static Lines FillFirstRow(const TextTable& own, const std::string& text) {
    Lines cells(own.rows.size());
    if (!cells.empty()) cells.front() = text;
    return cells;
  }

  static std::string DimsText(const Comparison& comparison) {
    Lines parts;
    for (const auto& [name, size] : comparison.dims)
      parts.push_back(fmt::format("{}={}", name, size));
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  const ComparisonSet& set_;
  const std::optional<ByteUnit> unit_;
  bool has_bounds_ = false;
  bool has_dims_ = false;
  TextTable table_;
  std::set<size_t> rules_;
  std::string last_model_;
};

}  // namespace

std::string CompareSeveralText(const ComparisonSet& set, const Terminal& terminal) {
  AlignedTables aligned(set, terminal);
  std::string text, tables;
  std::set<std::string> reported;
  for (const Comparison& comparison : set.all) {
    const std::string table = comparison.unread ? "" : aligned.Take(comparison.rows.size());
    text += TextBlock(set, comparison, table, terminal, &reported) + "\n";
    tables += table;
  }
  if (tables.empty()) text.pop_back();
  return tables.empty() ? text : text + Folded(LegendOf(set, tables), terminal.table_width());
}

std::string CompareSeveralMarkdown(const ComparisonSet& set) {
  std::string text;
  std::set<std::string> reported;
  for (const Comparison& comparison : set.all) {
    text += MarkdownBlock(set, comparison, &reported) + "\n";
  }
  text += "Times are shares of a training step.\n";
  if (AnyComparison(set, HasNeeds)) text += fmt::format("\nThe status {}.\n", kNeedsNote);
  if (AnyComparison(set, HasStopped)) text += "\n" + std::string(kStoppedNote);
  if (AnyComparison(set, HasProvenClass)) text += "\n\\" + std::string(kProvenNote);
  return text;
}

std::string CompareSeveralLatex(const ComparisonSet& set) {
  std::string text = "% times as shares of a training step";
  if (!set.has_several_budgets() && !set.budget_field.empty()) {
    text += fmt::format("; {} {}", FlagOf(set.budget_field), set.budgets.front());
  }
  text += "\n";
  for (const Comparison& comparison : set.all) {
    if (comparison.unread) {
      text += fmt::format("% {}: not read: {}\n", SubjectOf(comparison),
                          PrintableMessage(MessageOf(*comparison.unread)));
      continue;
    }
    const PlanRequest& request = comparison.source->request;
    text += fmt::format("% {}; keep all needs {} (cost model {})\n",
                        ModelLine(*comparison.source, request),
                        HumanBytes(comparison.baseline_peak), request.cost_model);
  }
  return text + LatexTable(set).Text();
}

}  // namespace ckplan
