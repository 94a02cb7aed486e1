// The forms of `ckplan compare` for programs.
#include <string>
#include <vector>

#include "cli/ckplan/compare_table.h"
#include "cli/ckplan/compare_text.h"
#include "cli/ckplan/request_text.h"
#include "cli/common/text_table.h"

namespace ckplan {
namespace {

using Cells = std::vector<std::string>;

constexpr std::string_view kNotRead = "not read";          // The status of a model without rows.
constexpr size_t kPlanColumns = 11;                        // From peak_bytes to bound_scope.
constexpr std::string_view kHostPeak = "host_peak_bytes";  // Only where there is a link.

std::string NumberOrNothing(const std::optional<Bytes>& bytes) {
  return bytes ? std::to_string(bytes->count()) : "";
}

// The names of the columns for what only some requests have, of all comparisons together.
std::vector<std::string> FurtherColumns(const ComparisonSet& set) {
  std::vector<std::string> names;
  for (const Comparison& comparison : set.all) {
    if (comparison.unread) continue;
    if (comparison.source->request.offload && names.empty()) names.emplace_back(kHostPeak);
    for (const auto& cell : RequestCells(comparison.source->request)) {
      if (std::find(names.begin(), names.end(), cell.first) == names.end()) {
        names.push_back(cell.first);
      }
    }
  }
  return names;
}

void AppendPlan(const PlanFigures& f, Cells* cells) {
  for (const int64_t number : {f.peak.count(), f.baseline_peak.count(), f.arena.count(),
                               f.overhead.count(), f.forward_cost.count(), f.backward_cost.count(),
                               f.paper.peak.count(), f.paper.overhead.count()}) {
    cells->push_back(std::to_string(number));
  }
  const bool has_bound = f.lower_bound_cost.has_value();
  cells->push_back(has_bound ? std::to_string(f.lower_bound_cost->count()) : "");
  cells->push_back(has_bound ? std::to_string((f.overhead - *f.lower_bound_cost).count()) : "");
  cells->emplace_back(f.certificate ? NameOf(f.certificate->scope) : "");
}

Cells CsvRow(const ComparisonSet& set, const Comparison& comparison, const AlgorithmRow& row,
             const std::vector<std::string>& further) {
  const PlanRequest& request = comparison.source->request;
  Cells cells = {comparison.model, DimsCell(request.dims)};
  if (!set.is_single()) cells.push_back(row.budget_text);
  cells.insert(cells.end(), {row.algorithm, row.guarantee, std::string(StatusWord(row)),
                             request.cost_model, request.cost_unit, NumberOrNothing(row.budget)});
  if (row.plan) {
    AppendPlan(row.plan->figures, &cells);
  } else {
    cells.insert(cells.end(), kPlanColumns, "");
  }
  cells.insert(cells.end(), {NumberOrNothing(row.min_budget), row.failure});
  const auto values = RequestCells(request);
  for (const std::string& name : further) {
    if (name == kHostPeak) {
      const bool is_known = row.plan && row.plan->figures.offload;
      cells.push_back(is_known ? std::to_string(row.plan->figures.offload->host_peak.count()) : "");
      continue;
    }
    const auto found = std::find_if(values.begin(), values.end(),
                                    [&](const auto& cell) { return cell.first == name; });
    cells.push_back(found == values.end() ? "" : found->second);
  }
  return cells;
}

// The row of a model that was not read. Only such a set has one: the failure of a single model is
// that of the command.
Cells UnreadCsvRow(const Comparison& comparison, const std::vector<TableColumn>& columns) {
  Cells cells(columns.size());
  for (size_t c = 0; c < columns.size(); ++c) {
    if (columns[c].name == "model") cells[c] = comparison.model;
    if (columns[c].name == "dims") cells[c] = DimsCell(comparison.dims);
    if (columns[c].name == "status") cells[c] = kNotRead;
    if (columns[c].name == "failure") cells[c] = comparison.unread->message;
  }
  return cells;
}

ComparedModel JsonOf(const ComparisonSet& set, const Comparison& comparison) {
  ComparedModel model;
  if (comparison.unread) {
    model.head.model.name = comparison.model;
    model.head.request.dims = comparison.dims;
    model.failure = comparison.unread->message;
    return model;
  }
  model.head = {comparison.source->identity, comparison.source->request, comparison.baseline_peak,
                set.has_several_budgets() ? set.budget_field : ""};
  model.rows.assign(comparison.rows.begin(), comparison.rows.end());
  return model;
}

}  // namespace

std::string CompareCsv(const ComparisonSet& set) {
  TextTable table;
  table.columns = {{"model"}, {"dims"}};
  if (!set.is_single()) {
    table.columns.push_back({set.budget_field.empty() ? "budget" : set.budget_field});
  }
  for (const char* const name :
       {"algorithm", "guarantee", "status", "cost_model", "cost_unit", "budget_bytes", "peak_bytes",
        "baseline_peak_bytes", "arena_bytes", "overhead_cost", "forward_cost", "backward_cost",
        "paper_peak_bytes", "paper_overhead_cost", "lower_bound_cost", "gap_cost", "bound_scope",
        "least_bytes", "failure"}) {
    table.columns.push_back({name});
  }
  const std::vector<std::string> further = FurtherColumns(set);
  for (const std::string& name : further) table.columns.push_back({name});
  for (const Comparison& comparison : set.all) {
    if (comparison.unread) table.rows.push_back(UnreadCsvRow(comparison, table.columns));
    for (const AlgorithmRow& row : comparison.rows) {
      table.rows.push_back(CsvRow(set, comparison, row, further));
    }
  }
  return table.Csv();
}

std::string CompareJson(const ComparisonSet& set) {
  if (!set.has_several) {
    const ComparedModel model = JsonOf(set, set.all.front());
    return WriteCompareJson(model.head, model.rows);
  }
  std::vector<ComparedModel> models;
  for (const Comparison& comparison : set.all) models.push_back(JsonOf(set, comparison));
  return WriteCompareJson(models);
}

}  // namespace ckplan
