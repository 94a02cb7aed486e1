#include "cli/ckplan/compare_text.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/ckplan/compare_table.h"
#include "cli/ckplan/offload_text.h"
#include "cli/ckplan/plan_summary.h"
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
  std::set<std::string> reported;  // Two rows of one algorithm may fail alike.
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

}  // namespace ckplan
