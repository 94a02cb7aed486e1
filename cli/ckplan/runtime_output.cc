#include "cli/ckplan/runtime_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <utility>
#include <vector>

#include "cli/ckplan/plan_summary.h"
#include "cli/ckplan/runtime_settings.h"
#include "lib/base/text.h"
#include "lib/files/emit/json_writer.h"
#include "lib/planning/plan/diff.h"

namespace ckplan {
namespace {

std::string ModuleText(const PlannedRegion& region) {
  return region.modules.size() == 1
             ? region.modules.front()
             : fmt::format("{} to {}", region.modules.front(), region.modules.back());
}

// "aten.mm.default 2 of 4, aten.gelu.default 1 of 1"
std::string SavedText(const PlannedRegion& region) {
  std::vector<std::string> saved;
  for (const Calls& calls : region.saved) {
    saved.push_back(fmt::format("{} {} of {}", calls.op, calls.calls.size(), calls.count));
  }
  return fmt::format("{}", fmt::join(saved, ", "));
}

TextTable RegionsTable(const Plan& plan, const RuntimePlan& found) {
  TextTable table;
  table.columns = {{"module", false, TableColumn::Fit::kElide},
                   {"operations", true},
                   {"run again", true},
                   {"time", true}};
  const bool names_saved =
      found.kind == RuntimeKind::kSac || found.kind == RuntimeKind::kTorchtitan;
  if (names_saved) table.columns.push_back({"saved", false, TableColumn::Fit::kElide});
  for (const PlannedRegion& region : found.regions) {
    std::vector<std::string> row = {ModuleText(region), std::to_string(region.ops),
                                    std::to_string(region.run_again),
                                    SignedPercent(AddedShare(plan, region.overhead))};
    if (names_saved) row.push_back(SavedText(region));
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string VerdictText(const Plan& plan, const RuntimePlan& found) {
  const std::string_view search =
      found.is_exact ? "of all plans of this kind" : "of the plans of this kind that were tried";
  if (!found.fits) {
    return fmt::format("{}, none fits in {}; the best found needs {} more", search,
                       HumanBytes(found.budget), HumanBytes(found.peak - found.budget));
  }
  const double lost = AddedShare(plan, found.overhead) - StepOverheadRatio(plan.figures);
  return fmt::format("{}, this is the fastest that fits in {}: {} of a step compared with the plan",
                     search, HumanBytes(found.budget), SignedPercent(lost));
}

void WriteFigures(JsonWriter& json, std::string_view key, Bytes peak, Cost overhead) {
  json.Key(key).BeginObject(JsonLayout::kInline);
  json.Key("peak_bytes").Amount(peak).Key("overhead_cost").Amount(overhead).End();
}

void WriteSetting(JsonWriter& json, const RuntimePlan& found) {
  json.Key("setting").BeginObject(JsonLayout::kInline);
  json.Key("layers").Integer(found.setting.layers);
  json.Key("method").Text(found.setting.method);
  json.Key("modules").BeginArray(JsonLayout::kInline);
  for (const std::string& module : found.setting.modules) json.Text(module);
  json.End().End();
}

void WriteRegion(JsonWriter& json, const PlannedRegion& region) {
  json.BeginObject(JsonLayout::kInline);
  json.Key("modules").BeginArray(JsonLayout::kInline);
  for (const std::string& module : region.modules) json.Text(module);
  json.End();
  json.Key("operations").Integer(region.ops).Key("run_again").Integer(region.run_again);
  json.Key("overhead_cost").Amount(region.overhead);
  json.Key("saved").BeginArray(JsonLayout::kInline);
  for (const Calls& calls : region.saved) {
    json.BeginObject(JsonLayout::kInline);
    json.Key("op").Text(calls.op);
    json.Key("calls").BeginArray(JsonLayout::kInline);
    for (const int64_t call : calls.calls) json.Integer(call);
    json.End().Key("of").Integer(calls.count).End();
  }
  json.End().End();
}

}  // namespace

double AddedShare(const Plan& plan, Cost overhead) {
  PlanFigures changed = plan.figures;
  changed.overhead = overhead;
  return StepOverheadRatio(changed);
}

TextTable BesidePlanTable(const Plan& plan, std::string heading, Bytes peak, Cost overhead) {
  const PlanFigures& figures = plan.figures;
  TextTable table;
  table.columns = {{""}, {"keep all", true}, {"plan", true}, {std::move(heading), true}};
  table.rows = {
      {"peak", HumanBytes(figures.baseline_peak), HumanBytes(figures.peak), HumanBytes(peak)},
      {"time", SignedPercent(0), SignedPercent(StepOverheadRatio(figures)),
       SignedPercent(AddedShare(plan, overhead))}};
  return table;
}

std::string RuntimePlanText(const Plan& plan, const RuntimePlan& found, const Terminal& terminal) {
  std::string text = fmt::format("{}   {}   for {}\n\n", Printable(plan.model.name, kLongestName),
                                 Printable(plan.request.algorithm), InfoOf(found.kind).name);
  const bool keeps_everything = KeepsEverything(found);
  if (!keeps_everything) {
    text += RegionsTable(plan, found).Text(0, terminal.table_width()) + "\n";
  }
  const std::string_view heading = InfoOf(found.kind).name;
  text += BesidePlanTable(plan, std::string(heading), found.peak, found.overhead)
              .Text(0, terminal.table_width());
  text += "\n" + VerdictText(plan, found) + "\n\n";
  return text + (keeps_everything ? "nothing needs recomputing, so there is nothing to set\n"
                                  : RuntimeSettings(found));
}

std::string RuntimePlanJson(const Plan& plan, const RuntimePlan& found) {
  JsonWriter json;
  json.BeginObject(JsonLayout::kLines);
  json.Key("schema_version").Text("1.0");
  json.Key("model").Text(plan.model.name);
  json.Key("sha256").Text(plan.model.sha256);
  json.Key("algorithm").Text(plan.request.algorithm);
  json.Key("kind").Text(InfoOf(found.kind).name);
  json.Key("budget_bytes").Amount(found.budget);
  json.Key("fits").Boolean(found.fits);
  json.Key("is_exact").Boolean(found.is_exact);
  json.Key("cost_unit").Text(plan.request.cost_unit);
  json.Key("step_cost").Amount(plan.figures.forward_cost + plan.figures.backward_cost);
  WriteFigures(json, "keep_all", plan.figures.baseline_peak, Cost(0));
  WriteFigures(json, "plan", plan.figures.peak, plan.figures.overhead);
  WriteFigures(json, "runtime", found.peak, found.overhead);
  json.Key("layers").Integer(found.layers);
  WriteSetting(json, found);
  json.Key("regions").BeginArray(JsonLayout::kLines);
  for (const PlannedRegion& region : found.regions) WriteRegion(json, region);
  json.End();
  json.Key("paste").Text(KeepsEverything(found) ? "" : RuntimeSettings(found));
  json.End();
  return std::move(json).Finish();
}

}  // namespace ckplan
