#include "cli/ckplan/diff_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/ckplan/plan_summary.h"
#include "cli/common/text_table.h"
#include "lib/base/human_bytes.h"
#include "lib/base/printable.h"
#include "lib/emit/json_diff.h"

namespace ckplan {
namespace {

constexpr size_t kShownChanges = 12;

std::string SignedFixed(double value) {
  const std::string text = fmt::format("{:+.3f}", value);
  return text == "+0.000" || text == "-0.000" ? "0.000" : text;
}

std::string SignedWhole(double value) {
  return value == 0 ? std::string("0") : fmt::format("{:+.0f}", value);
}

// Nothing where there was nothing to grow from.
std::string Growth(double older, double newer) {
  if (older == newer) return SignedPercent(0);
  return older == 0 ? "" : SignedPercent(newer / older - 1);
}

// In doubles, for sums of figures of a file that has not been checked may exceed 2^63.
double StepCost(const PlanFigures& figures) {
  return static_cast<double>(figures.forward_cost.count()) +
         static_cast<double>(figures.backward_cost.count()) +
         static_cast<double>(figures.overhead.count());
}

std::vector<std::string> BytesRow(std::string name, Bytes older, Bytes newer) {
  return {std::move(name), HumanBytes(older), HumanBytes(newer), SignedBytes(newer - older),
          Growth(static_cast<double>(older.count()), static_cast<double>(newer.count()))};
}

// Costs by different models have nothing to do with each other.
void AddTimeRows(const ComparedPlans& plans, TextTable* table) {
  const PlanFigures& older = plans.older.plan.figures;
  const PlanFigures& newer = plans.newer.plan.figures;
  const double old_ratio = 1 + StepOverheadRatio(older);
  const double new_ratio = 1 + StepOverheadRatio(newer);
  const bool compares = plans.diff.has_same_costs;
  table->rows.push_back({"time", fmt::format("{:.3f}", old_ratio), fmt::format("{:.3f}", new_ratio),
                         compares ? SignedFixed(new_ratio - old_ratio) : "",
                         compares ? Growth(old_ratio, new_ratio) : ""});
  if (!compares) return;
  const std::string& unit = plans.newer.plan.request.cost_unit;
  const double old_step = StepCost(older);
  const double new_step = StepCost(newer);
  table->rows.push_back({unit == "1" ? "step cost" : "step " + unit,
                         fmt::format("{:.0f}", old_step), fmt::format("{:.0f}", new_step),
                         SignedWhole(new_step - old_step), Growth(old_step, new_step)});
}

TextTable FiguresTable(const ComparedPlans& plans) {
  const PlanFigures& older = plans.older.plan.figures;
  const PlanFigures& newer = plans.newer.plan.figures;
  TextTable table;
  table.columns = {{""}, {"old", true}, {"new", true}, {"change", true}, {"", true}};
  table.rows.push_back(BytesRow("peak", older.peak, newer.peak));
  table.rows.push_back(BytesRow("arena", older.arena, newer.arena));
  AddTimeRows(plans, &table);
  const PlanDiff& diff = plans.diff;
  table.rows.push_back({"kept", std::to_string(diff.old_kept), std::to_string(diff.new_kept),
                        SignedWhole(static_cast<double>(diff.new_kept - diff.old_kept)), ""});
  return table;
}

// "paper budget"
std::string TitleOfField(std::string_view name) {
  std::string title(name);
  std::replace(title.begin(), title.end(), '_', ' ');
  return title;
}

// A row for each field in which the requests differ.
TextTable RequestTable(const PlanDiff& diff) {
  TextTable table;
  table.columns = {{"asked for"},
                   {"old", false, TableColumn::Fit::kElide},
                   {"new", false, TableColumn::Fit::kElide}};
  for (const RequestDifference& difference : diff.request) {
    table.rows.push_back(
        {TitleOfField(difference.field), difference.spoken_older, difference.spoken_newer});
  }
  return table;
}

// "2x -> 1x"
std::string RunsText(const NodeChange& change) {
  return change.old_runs == change.new_runs
             ? ""
             : fmt::format("{}x -> {}x", change.old_runs, change.new_runs);
}

// What is no change of a node's, so that the last column adds up to the change of the peak.
void AddRest(const PlanDiff& diff, TextTable* table) {
  if (!diff.rest) return;
  const std::pair<std::string_view, Bytes> parts[] = {
      {"[nodes treated as before]", diff.rest->tensors},
      {"[gradients]", diff.rest->gradients},
      {"[workspace]", diff.rest->workspace},
      {"[other micro-batches]", diff.rest->other_micro_batches}};
  for (const auto& [name, bytes] : parts) {
    if (bytes == Bytes(0)) continue;
    table->rows.push_back({"", std::string(name), "", "", SignedBytes(bytes)});
  }
}

TextTable ChangesTable(const PlanDiff& diff, size_t shown, size_t name_width) {
  TextTable table;
  table.columns = {
      {""}, {"node", false, TableColumn::Fit::kElide}, {"runs"}, {"held", true}, {"at peak", true}};
  Bytes rest_held, rest_at_peak;
  for (size_t i = 0; i < diff.changes.size(); ++i) {
    const NodeChange& change = diff.changes[i];
    if (i >= shown) {
      rest_held += change.held;
      rest_at_peak += change.at_peak;
      continue;
    }
    const auto [sign, verb] = WordsOf(change);
    table.rows.push_back({fmt::format("{} {}", sign, verb), Elided(change.name, name_width),
                          RunsText(change), SignedBytes(change.held), SignedBytes(change.at_peak)});
  }
  if (diff.changes.size() > shown) {
    const size_t others = diff.changes.size() - shown;
    table.rows.push_back({"~", fmt::format("[{} other{}]", others, others == 1 ? "" : "s"), "",
                          SignedBytes(rest_held), SignedBytes(rest_at_peak)});
  }
  AddRest(diff, &table);
  if (diff.rest) return table;
  table.columns.pop_back();
  for (auto& row : table.rows) row.pop_back();
  return table;
}

size_t ShownOf(const PlanDiff& diff, bool shows_all) {
  return shows_all ? diff.changes.size() : std::min(kShownChanges, diff.changes.size());
}

bool HasRows(const PlanDiff& diff) {
  return !diff.changes.empty() || (diff.rest && *diff.rest != RestAtPeak{});
}

std::string Shown(std::string_view name) { return Printable(name, kLongestName); }

// "old.json   exact-dp   net.onnx sha256:374357ab23c2"
std::string Heading(const DiffSide& side) {
  constexpr size_t kShownDigits = 12;
  const PlanDigest& plan = side.plan;
  const bool is_file = side.title != plan.request.algorithm;
  return fmt::format(
      "{}{}   {} sha256:{}{}", Shown(side.title),
      is_file ? "   " + Shown(plan.request.algorithm) : "", Shown(plan.model.name),
      Shown(plan.model.sha256.substr(0, kShownDigits)),
      plan.request.budget.is_given() ? "   budget " + HumanBytes(plan.request.budget.bytes) : "");
}

std::string MarkdownName(const DiffSide& side) {
  const std::string algorithm = Shown(side.plan.request.algorithm);
  if (side.title == algorithm) return fmt::format("`{}`", algorithm);
  return fmt::format("`{}` ({})", Shown(side.title), algorithm);
}

}  // namespace

std::string DiffText(const ComparedPlans& plans, bool shows_all, const Terminal& terminal) {
  constexpr size_t kOtherColumns = 55;
  constexpr int kMinWidth = 80;
  const auto width = static_cast<size_t>(std::max(terminal.width, kMinWidth));
  const PlanDiff& diff = plans.diff;
  std::string text =
      fmt::format("{}\n{}\n", Styled("--- " + Heading(plans.older), TextStyle::kBold, terminal),
                  Styled("+++ " + Heading(plans.newer), TextStyle::kBold, terminal));
  const size_t table_width = terminal.table_width();
  text += FiguresTable(plans).Text(0, table_width);
  if (!diff.request.empty()) text += '\n' + RequestTable(diff).Text(0, table_width);
  if (diff.changes.empty()) text += "\nno node is treated differently\n";
  if (!HasRows(diff)) return text;
  return text + '\n' +
         ChangesTable(diff, ShownOf(diff, shows_all), width - kOtherColumns).Text(0, table_width);
}

std::string DiffMarkdown(const ComparedPlans& plans, bool shows_all) {
  constexpr size_t kNameWidth = 80;
  const PlanDiff& diff = plans.diff;
  std::string text =
      fmt::format("**Plan of `{}`**: {} -> {}\n\n", Shown(plans.newer.plan.model.name),
                  MarkdownName(plans.older), MarkdownName(plans.newer));
  text += FiguresTable(plans).Markdown();
  if (!diff.request.empty()) text += '\n' + RequestTable(diff).Markdown();
  if (diff.changes.empty()) text += "\nNo node is treated differently.\n";
  if (!HasRows(diff)) return text;
  return text + '\n' + ChangesTable(diff, ShownOf(diff, shows_all), kNameWidth).Markdown();
}

}  // namespace ckplan
