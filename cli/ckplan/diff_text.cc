#include "cli/ckplan/diff_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "cli/ckplan/plan_summary.h"
#include "cli/common/text_table.h"
#include "lib/base/text.h"
#include "lib/files/emit/json_compare.h"

namespace ckplan {
namespace {

constexpr size_t kShownChanges = 12;

std::string FormatSignedDecimal(double value) {
  const std::string text = fmt::format("{:+.3f}", value);
  return text == "+0.000" || text == "-0.000" ? "0.000" : text;
}

std::string FormatSignedInteger(double value) {
  return value == 0 ? std::string("0") : fmt::format("{:+.0f}", value);
}

// Empty if the older figure is 0.
std::string Growth(double older, double newer) {
  if (older == newer) return SignedPercent(0);
  return older == 0 ? "" : SignedPercent(newer / older - 1);
}

// Computed in doubles, because sums of figures of an unchecked file may exceed 2^63.
double StepCost(const PlanFigures& figures) {
  return static_cast<double>(figures.forward_cost.count()) +
         static_cast<double>(figures.backward_cost.count()) +
         static_cast<double>(figures.overhead.count());
}

std::vector<std::string> BytesRow(std::string name, Bytes older, Bytes newer) {
  return {std::move(name), HumanBytes(older), HumanBytes(newer), SignedBytes(newer - older),
          Growth(static_cast<double>(older.count()), static_cast<double>(newer.count()))};
}

// Costs by different cost models cannot be compared.
void AddTimeRows(const ComparedPlans& plans, TextTable* table) {
  const PlanFigures& older = plans.older.plan.figures;
  const PlanFigures& newer = plans.newer.plan.figures;
  const double old_ratio = 1 + StepOverheadRatio(older);
  const double new_ratio = 1 + StepOverheadRatio(newer);
  const bool compares = plans.diff.has_same_costs;
  table->rows.push_back({"time", fmt::format("{:.3f}", old_ratio), fmt::format("{:.3f}", new_ratio),
                         compares ? FormatSignedDecimal(new_ratio - old_ratio) : "",
                         compares ? Growth(old_ratio, new_ratio) : ""});
  if (!compares) return;
  const std::string& unit = plans.newer.plan.request.cost_unit;
  const double old_step = StepCost(older);
  const double new_step = StepCost(newer);
  table->rows.push_back({unit == "1" ? "step cost" : "step " + unit,
                         fmt::format("{:.0f}", old_step), fmt::format("{:.0f}", new_step),
                         FormatSignedInteger(new_step - old_step), Growth(old_step, new_step)});
}

TextTable FiguresTable(const ComparedPlans& plans) {
  const PlanFigures& older = plans.older.plan.figures;
  const PlanFigures& newer = plans.newer.plan.figures;
  TextTable table;
  table.columns = {{""}, {"old", true}, {"new", true}, {"change", true}, {"", true}};
  table.rows.push_back(BytesRow("peak", older.peak, newer.peak));
  table.rows.push_back(BytesRow("arena", older.arena, newer.arena));
  if (older.offload || newer.offload) {
    const OffloadFigures before = older.offload.value_or(OffloadFigures{});
    const OffloadFigures after = newer.offload.value_or(OffloadFigures{});
    table.rows.push_back(BytesRow("on host", before.host_peak, after.host_peak));
    table.rows.push_back(BytesRow("copied", before.transferred, after.transferred));
  }
  AddTimeRows(plans, &table);
  const PlanDiff& diff = plans.diff;
  if (!diff.compares_nodes) return table;
  table.rows.push_back({"kept", std::to_string(diff.old_kept), std::to_string(diff.new_kept),
                        FormatSignedInteger(static_cast<double>(diff.new_kept - diff.old_kept)),
                        ""});
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

// Changes that belong to no node, so that the last column adds up to the change of the peak.
void AddRest(const PlanDiff& diff, TextTable* table) {
  if (!diff.rest) return;
  const std::pair<std::string_view, Bytes> parts[] = {
      {"[unchanged nodes]", diff.rest->tensors},
      {"[gradients]", diff.rest->gradients},
      {"[workspace]", diff.rest->workspace},
      {"[other micro-batches]", diff.rest->other_micro_batches}};
  for (const auto& [name, bytes] : parts) {
    if (bytes == Bytes(0)) continue;
    table->rows.push_back({"", std::string(name), "", "", SignedBytes(bytes)});
  }
}

// Changes that are not shown individually.
struct OtherChanges {
  size_t count = 0;
  Bytes held;
  Bytes at_peak;

  void Add(const NodeChange& change) {
    ++count;
    held += change.held;
    at_peak += change.at_peak;
  }
  Bytes worth() const { return WorthOf(held, at_peak); }
};

struct ChangeRow {
  Bytes worth;
  std::vector<std::string> cells;
};

ChangeRow RowOf(const NodeChange& change, size_t name_width) {
  const auto [sign, verb] = WordsOf(change);
  return {WorthOf(change.held, change.at_peak),
          {fmt::format("{} {}", sign, verb), Elided(change.name, name_width), RunsText(change),
           SignedBytes(change.held), SignedBytes(change.at_peak)}};
}

ChangeRow RowOf(const OtherChanges& others, const std::string& name, size_t name_width) {
  return {
      others.worth(),
      {"~", Elided(name, name_width), "", SignedBytes(others.held), SignedBytes(others.at_peak)}};
}

// Shortens the nodes' names again so that different names stay different.
void TellNamesApart(size_t name_width, std::span<const NodeChange> changes,
                    std::vector<ChangeRow>* rows) {
  std::vector<std::string> names;
  for (size_t i = 0; i < rows->size(); ++i) names.push_back(changes[i].name);
  const std::vector<std::string> elided = ElidedApart(names, name_width);
  for (size_t i = 0; i < rows->size(); ++i) (*rows)[i].cells[1] = elided[i];
}

// The rows of the shown nodes and of all others. The others are one row, the last, if it is worth
// no more than any row above it; otherwise there is one row for each group, of which there are few.
// Sorted by how much they change.
std::vector<ChangeRow> RowsOf(const ComparedPlans& plans, size_t shown, size_t name_width) {
  const std::vector<NodeChange>& changes = plans.diff.changes;
  std::vector<ChangeRow> rows;
  for (size_t i = 0; i < shown; ++i) rows.push_back(RowOf(changes[i], name_width));
  OtherChanges all;
  std::map<size_t, OtherChanges> by_group;
  for (size_t i = shown; i < changes.size(); ++i) {
    all.Add(changes[i]);
    by_group[plans.summary.group_of[i]].Add(changes[i]);
  }
  TellNamesApart(name_width, changes, &rows);
  if (all.count == 0) return rows;
  if (all.worth() <= rows.back().worth) {
    const std::string name = fmt::format("[{} other{}]", all.count, all.count == 1 ? "" : "s");
    rows.push_back(RowOf(all, name, name_width));
    return rows;
  }
  for (const auto& [group, others] : by_group) {
    const std::string& where = plans.summary.groups[group].name;
    rows.push_back(RowOf(others, fmt::format("[{} more in {}]", others.count, where), name_width));
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ChangeRow& a, const ChangeRow& b) { return b.worth < a.worth; });
  return rows;
}

TextTable ChangesTable(const ComparedPlans& plans, size_t shown, size_t name_width) {
  TextTable table;
  table.columns = {
      {""}, {"node", false, TableColumn::Fit::kElide}, {"runs"}, {"held", true}, {"at peak", true}};
  for (ChangeRow& row : RowsOf(plans, shown, name_width)) {
    table.rows.push_back(std::move(row.cells));
  }
  AddRest(plans.diff, &table);
  if (plans.diff.rest) return table;
  table.columns.pop_back();
  for (auto& row : table.rows) row.pop_back();
  return table;
}

// "2 -> 1"
std::string FromTo(int64_t older, int64_t newer) {
  return older == newer ? std::to_string(older) : fmt::format("{} -> {}", older, newer);
}

// The modules of the model, before any of its nodes.
TextTable GroupsTable(const ComparedPlans& plans, size_t name_width) {
  TextTable table;
  table.columns = {
      {"by " + std::string(NameOf(plans.summary.grouped_by)), false, TableColumn::Fit::kElide},
      {"nodes", true},
      {"reruns", true},
      {"held", true},
      {"at peak", true}};
  for (const GroupChange& group : plans.summary.groups) {
    table.rows.push_back({Elided(group.name, name_width), std::to_string(group.changed),
                          FromTo(group.old_reruns, group.new_reruns), SignedBytes(group.held),
                          SignedBytes(group.at_peak)});
  }
  if (plans.diff.rest) return table;
  table.columns.pop_back();
  for (auto& row : table.rows) row.pop_back();
  return table;
}

TextTable CheckpointsTable(const DiffSummary& summary) {
  constexpr size_t kNamed = 3;
  constexpr size_t kNameWidth = 40;
  TextTable table;
  table.columns = {
      {"checkpoints"}, {"nodes", true}, {"bytes", true}, {"", false, TableColumn::Fit::kElide}};
  const std::pair<std::string_view, const ComparedCheckpoints&> sides[] = {
      {"old alone", summary.old_only}, {"new alone", summary.new_only}, {"both", summary.both}};
  for (const auto& [title, checkpoints] : sides) {
    const size_t count = checkpoints.names.size();
    std::string names;
    for (size_t i = 0; i < std::min(count, kNamed); ++i) {
      names += (i == 0 ? "" : ", ") + Elided(checkpoints.names[i], kNameWidth);
    }
    if (count > kNamed) names += ", ...";
    table.rows.push_back(
        {std::string(title), std::to_string(count), HumanBytes(checkpoints.bytes), names});
  }
  return table;
}

// "needs 312.00 MiB less at the peak, but has 1.2 percentage points more overhead"
std::string VerdictText(const ComparedPlans& plans) {
  const PlanVerdict& verdict = plans.summary.verdict;
  const auto word = [](Lesser lesser) { return lesser == Lesser::kNewer ? "less" : "more"; };
  std::string text = "has the same peak";
  if (verdict.memory != Lesser::kNeither) {
    const bool is_less = verdict.memory == Lesser::kNewer;
    text = fmt::format("needs {} {} at the peak",
                       HumanBytes(is_less ? Bytes(0) - verdict.peak : verdict.peak),
                       word(verdict.memory));
  }
  if (!verdict.time) return text + "; their times cannot be compared";
  const bool is_trade = verdict.memory != Lesser::kNeither && *verdict.time != Lesser::kNeither &&
                        verdict.memory != *verdict.time;
  text += is_trade ? ", but " : ", and ";
  if (*verdict.time == Lesser::kNeither) return text + "takes as long";
  const double share = std::abs(verdict.longer);
  return text + (plans.diff.has_same_model ? fmt::format("has {:.1f} percentage points {} overhead",
                                                         100 * share, word(*verdict.time))
                                           : fmt::format("takes {:.1f}% {} time a step",
                                                         100 * share, word(*verdict.time)));
}

// The rows of the curves at about equal distances, the first and the last among them.
std::vector<CurveChange> ShownCurve(const std::vector<CurveChange>& curve) {
  constexpr size_t kShown = 8;
  if (curve.size() <= kShown) return curve;
  std::vector<CurveChange> shown;
  for (size_t i = 0; i < kShown; ++i) {
    shown.push_back(curve[i * (curve.size() - 1) / (kShown - 1)]);
  }
  return shown;
}

// What the curves add within the same peaks; empty if they are equal, or not both known.
TextTable CurveTable(const ComparedPlans& plans) {
  const PlanFigures& older = plans.older.plan.figures;
  const PlanFigures& newer = plans.newer.plan.figures;
  TextTable table;
  if (older.curve == newer.curve) return table;
  table.columns = {{"curve within", true}, {"old", true}, {"new", true}, {"change", true}};
  const auto share = [](const PlanFigures& figures, const std::optional<Cost>& added) {
    PlanFigures at = figures;
    at.overhead = added.value_or(Cost(0));
    return StepOverheadRatio(at);
  };
  for (const CurveChange& row : ShownCurve(plans.diff.curve)) {
    const double before = share(older, row.older);
    const double now = share(newer, row.newer);
    table.rows.push_back({HumanBytes(row.peak), row.older ? SignedPercent(before) : "no plan",
                          row.newer ? SignedPercent(now) : "no plan",
                          row.older && row.newer ? SignedPercent(now - before) : ""});
  }
  return table;
}

size_t ShownOf(const PlanDiff& diff, bool shows_all) {
  return shows_all ? diff.changes.size() : std::min(kShownChanges, diff.changes.size());
}

bool HasCheckpointChanges(const DiffSummary& summary) {
  return !summary.old_only.names.empty() || !summary.new_only.names.empty();
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
  const size_t name_width = width - kOtherColumns;
  if (diff.has_changes) {
    text += fmt::format("{} {}\n\n", Shown(plans.newer.title), VerdictText(plans));
  }
  text += FiguresTable(plans).Text(0, table_width);
  if (const TextTable curve = CurveTable(plans); !curve.rows.empty()) {
    text += '\n' + curve.Text(0, table_width);
  }
  if (!diff.request.empty()) text += '\n' + RequestTable(diff).Text(0, table_width);
  if (!plans.summary.groups.empty())
    text += '\n' + GroupsTable(plans, name_width).Text(0, table_width);
  if (HasCheckpointChanges(plans.summary)) {
    text += '\n' + CheckpointsTable(plans.summary).Text(0, table_width);
  }
  if (diff.changes.empty() && diff.compares_nodes) text += "\nno node changed\n";
  if (!HasRows(diff)) return text;
  return text + '\n' +
         ChangesTable(plans, ShownOf(diff, shows_all), name_width).Text(0, table_width);
}

std::string DiffMarkdown(const ComparedPlans& plans, bool shows_all) {
  constexpr size_t kNameWidth = 80;
  const PlanDiff& diff = plans.diff;
  std::string text =
      fmt::format("**Plan of `{}`**: {} -> {}\n\n", Shown(plans.newer.plan.model.name),
                  MarkdownName(plans.older), MarkdownName(plans.newer));
  if (diff.has_changes) {
    text += fmt::format("`{}` {}.\n\n", Shown(plans.newer.title), VerdictText(plans));
  }
  text += FiguresTable(plans).Markdown();
  if (const TextTable curve = CurveTable(plans); !curve.rows.empty())
    text += '\n' + curve.Markdown();
  if (!diff.request.empty()) text += '\n' + RequestTable(diff).Markdown();
  if (!plans.summary.groups.empty()) text += '\n' + GroupsTable(plans, kNameWidth).Markdown();
  if (HasCheckpointChanges(plans.summary))
    text += '\n' + CheckpointsTable(plans.summary).Markdown();
  if (diff.changes.empty() && diff.compares_nodes) text += "\nNo node changed.\n";
  if (HasRows(diff)) {
    text += '\n' + ChangesTable(plans, ShownOf(diff, shows_all), kNameWidth).Markdown();
  }
  // The blank line at the end keeps what follows, as in a loop over plans, out of the table.
  return text + '\n';
}

}  // namespace ckplan
