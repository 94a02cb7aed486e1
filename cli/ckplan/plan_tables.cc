// The figures of a plan as a table for a page, and as a row for a program.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "cli/ckplan/plan_summary.h"
#include "cli/ckplan/request_text.h"
#include "cli/common/command_line.h"
#include "cli/common/text_table.h"
#include "lib/base/text.h"
#include "lib/planning/explain/traced_plan.h"
#include "lib/planning/plan/diff.h"

namespace ckplan {

std::string PlanMarkdown(const Source& source, const Plan& plan) {
  const PlanFigures& f = plan.figures;
  const PlanFacts facts = FactsOf(source.step(), plan);
  TextTable table;
  table.columns = {
      {plan.model.name}, {"keep all", true}, {plan.request.algorithm, true}, {"change", true}};
  const Bytes constants = TotalConstants(f);
  table.rows = {
      {"peak", HumanBytes(f.baseline_peak), HumanBytes(f.peak),
       SignedPercent(Ratio((f.peak - f.baseline_peak).count(), f.baseline_peak.count()))},
      {"peak with constants", HumanBytes(f.baseline_peak + constants),
       HumanBytes(f.peak + constants),
       SignedPercent(
           Ratio((f.peak - f.baseline_peak).count(), (f.baseline_peak + constants).count()))},
      {"time (" + plan.request.cost_model + ")", "1.000",
       fmt::format("{:.3f}", 1 + StepOverheadRatio(f)), SignedPercent(StepOverheadRatio(f))},
      {"ops that run again", "0", std::to_string(facts.run_twice + facts.run_more_often), ""},
  };
  std::string text = table.Markdown();
  const std::string remark = SavesNothing(f);
  return remark.empty() ? text : text + "\n" + Sentence(remark) + "\n";
}

std::string PlanCsv(const Source& source, const Plan& plan) {
  const PlanFigures& f = plan.figures;
  const PlanFacts facts = FactsOf(source.step(), plan);
  const auto text = [](auto amount) { return std::to_string(amount.count()); };
  const auto or_empty = [&](auto amount) { return amount ? text(*amount) : std::string(); };
  std::vector<std::pair<std::string, std::string>> cells = {
      {"model", plan.model.name},
      {"algorithm", plan.request.algorithm},
      {"objective", std::string(NameOf(plan.request.objective))},
      {"cost_model", plan.request.cost_model},
      {"budget_bytes", or_empty(plan.request.budget.in_bytes())},
      {"status", f.is_optimal ? "optimal" : "feasible"},
      {"peak_bytes", text(f.peak)},
      {"baseline_peak_bytes", text(f.baseline_peak)},
      {"constant_bytes", text(TotalConstants(f))},
      {"arena_bytes", text(f.arena)},
      {"overhead_cost", text(f.overhead)},
      {"forward_cost", text(f.forward_cost)},
      {"backward_cost", text(f.backward_cost)},
      {"kept_tensors", std::to_string(facts.kept_tensors)},
      {"recomputed_nodes", std::to_string(facts.run_twice + facts.run_more_often)},
  };
  for (auto& cell : RequestCells(plan.request)) cells.push_back(std::move(cell));
  TextTable table;
  table.rows.emplace_back();
  for (const auto& [name, value] : cells) {
    table.columns.push_back({name});
    table.rows.front().push_back(value);
  }
  return table.Csv();
}

}  // namespace ckplan
