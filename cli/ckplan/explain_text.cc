#include "cli/ckplan/explain_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/ckplan/plan_summary.h"
#include "cli/ckplan/request_text.h"
#include "lib/base/text.h"
#include "lib/planning/plan/diff.h"

namespace ckplan {
namespace {

constexpr size_t kIndent = 13;  // Indentation of a row's text, after its label.

}  // namespace

ExplanationWriter::ExplanationWriter(const Source& source, const TracedPlan& traced,
                                     const Screen& screen)
    : traced_(traced), graph_(traced.graph), figures_(traced.plan.figures), screen_(screen) {
  text_ += Folded(
      fmt::format("ckplan {}   {}\n", CKPLAN_VERSION, ModelLine(source, traced_.plan.request)),
      screen_.out.table_width());
  const Bytes budget = traced_.plan.request.budget.in_bytes().value_or(Bytes(0));
  const bool has_budget = traced_.plan.request.budget.in_bytes().has_value();
  Row("plan", fmt::format("{}: peak {} ({}){}, time {} of a step", traced_.plan.request.algorithm,
                          HumanBytes(figures_.peak),
                          SignedPercent(Ratio((figures_.peak - figures_.baseline_peak).count(),
                                              figures_.baseline_peak.count())),
                          has_budget ? fmt::format(" of a budget of {}", HumanBytes(budget)) : "",
                          SignedPercent(StepOverheadRatio(figures_))));
  if (!traced_.plan.request.pipeline) return;
  Row("in flight", fmt::format("{}; steps are those of one, peaks are with all",
                               InFlightText(traced_.plan.request)));
}

void ExplanationWriter::Row(std::string_view label, std::string_view value) {
  const size_t width = screen_.out.table_width();
  const size_t rest =
      width == TextTable::kAnyWidth || width <= 2 * kIndent ? width : width - kIndent;
  for (const std::string& line : Wrapped(Printable(value), rest)) {
    text_ += fmt::format("  {:<10} {}\n", std::exchange(label, ""), line);
  }
}

void ExplanationWriter::Table(const TextTable& table) {
  text_ += '\n' + table.Text(2, screen_.out.table_width());
}

void ExplanationWriter::Note(std::string_view note) {
  constexpr size_t kNoteIndent = 2;
  text_ += '\n';
  for (const std::string& line : Wrapped(note, screen_.out.table_width() - kNoteIndent)) {
    text_ += fmt::format("{:{}}{}\n", "", kNoteIndent, line);
  }
}

std::string ExplanationWriter::StepText(size_t step) const {
  return fmt::format("step {} ({})", step, Printable(traced_.NameOfStep(step), kLongestName));
}

std::string ExplanationWriter::TimeText(Cost cost) const {
  return SignedPercent(Ratio(cost.count(), StepCost().count()));
}

std::string ExplanationWriter::KindText(MemoryKind kind) const {
  return std::string(traced_.NameOfKind(kind));
}

namespace {

constexpr size_t kModuleRows = 10;
constexpr size_t kTensorRows = 10;
constexpr size_t kReleaseRows = 5;

std::string Share(Bytes part, Bytes whole) {
  return fmt::format("{:.1f}%", 100 * Ratio(part.count(), whole.count()));
}

std::string Others(size_t count) {
  return fmt::format("[{} other{}]", count, count == 1 ? "" : "s");
}

class PeakWriter : ExplanationWriter {
 public:
  PeakWriter(const Source& source, const TracedPlan& traced, const Screen& screen)
      : ExplanationWriter(source, traced, screen) {}

  std::string Text(const PeakExplanation& peak) && {
    WriteMoment(peak);
    WriteKinds(peak);
    WriteModules(peak);
    WriteLive(peak);
    WriteReleases(peak);
    WriteBounds(peak);
    return std::move(text_);
  }

 private:
  void WriteMoment(const PeakExplanation& peak) {
    if (traced_.steps().empty()) return Row("peak at", "the plan has no steps");
    Row("peak at", fmt::format("{} of {}{}", StepText(peak.step), traced_.steps().size(),
                               peak.equal_steps > 1
                                   ? fmt::format("; {} actions need as much", peak.equal_steps)
                                   : ""));
    Bytes gradients;
    if (!graph_.is_joint()) {
      gradients = peak.by_kind[static_cast<size_t>(MemoryKind::kGradients)];
    }
    std::string text = fmt::format("this operation uses {}", HumanBytes(peak.used));
    if (gradients > Bytes(0)) text += fmt::format(", gradients {}", HumanBytes(gradients));
    const Bytes held = peak.bytes - peak.other_micro_batches - peak.used - gradients;
    if (held > Bytes(0)) text += fmt::format(", and tensors kept for later {}", HumanBytes(held));
    Row("", text);
  }

  void WriteKinds(const PeakExplanation& peak) {
    TextTable table;
    table.columns = {{"what lives there"}, {"bytes", true}, {"share", true}, {"buffers", true}};
    for (size_t kind = 0; kind < kMemoryKinds; ++kind) {
      const auto count = std::count_if(
          peak.live.begin(), peak.live.end(),
          [&](const LiveAtPeak& item) { return static_cast<size_t>(item.kind) == kind; });
      if (count == 0) continue;
      table.rows.push_back({KindText(static_cast<MemoryKind>(kind)), HumanBytes(peak.by_kind[kind]),
                            Share(peak.by_kind[kind], peak.bytes), std::to_string(count)});
    }
    if (peak.other_micro_batches > Bytes(0)) {
      table.rows.push_back({"other micro-batches", HumanBytes(peak.other_micro_batches),
                            Share(peak.other_micro_batches, peak.bytes), "-"});
    }
    if (!table.rows.empty()) Table(table);
  }

  void WriteModules(const PeakExplanation& peak) {
    const std::vector<ModuleShare> shares = SharesOfModules(graph_, peak.live, kModuleRows);
    const bool has_modules = std::any_of(shares.begin(), shares.end(),
                                         [](const ModuleShare& s) { return !s.path.empty(); });
    if (!has_modules) return;
    const ByteUnit unit = UnitOf(peak.bytes);
    TextTable table;
    table.columns = {
        {"by module", false, TableColumn::Fit::kElide}, {unit.name, true}, {"share", true}};
    for (size_t kind = 0; kind < kMemoryKinds; ++kind) {
      if (peak.by_kind[kind] == Bytes(0)) continue;
      table.columns.push_back(
          {KindText(static_cast<MemoryKind>(kind)), true, TableColumn::Fit::kWhole, 1});
    }
    const auto add = [&](const std::string& name, const ModuleShare& share) {
      std::vector<std::string> cells = {name, AmountIn(unit, share.total()),
                                        Share(share.total(), peak.bytes)};
      for (size_t kind = 0; kind < kMemoryKinds; ++kind) {
        if (peak.by_kind[kind] == Bytes(0)) continue;
        const Bytes bytes = share.by_kind[kind];
        cells.push_back(bytes == Bytes(0) ? "-" : AmountIn(unit, bytes));
      }
      table.rows.push_back(std::move(cells));
    };
    const size_t shown = screen_.is_verbose ? shares.size() : std::min(shares.size(), kModuleRows);
    ModuleShare rest;
    for (size_t i = 0; i < shares.size(); ++i) {
      if (i < shown) {
        add(shares[i].path.empty() ? "(no module)" : shares[i].path, shares[i]);
        continue;
      }
      for (size_t kind = 0; kind < kMemoryKinds; ++kind) {
        rest.by_kind[kind] += shares[i].by_kind[kind];
      }
    }
    if (shares.size() > shown) add(Others(shares.size() - shown), rest);
    if (peak.other_micro_batches > Bytes(0)) {
      std::vector<std::string> cells(table.columns.size(), "-");
      cells[0] = "[other micro-batches]";
      cells[1] = AmountIn(unit, peak.other_micro_batches);
      cells[2] = Share(peak.other_micro_batches, peak.bytes);
      table.rows.push_back(std::move(cells));
    }
    Table(table);
  }

  std::string NameOfLive(const LiveAtPeak& item) const {
    if (item.holds == BufferKind::kWorkspace) return graph_.NameOf(item.node);
    return graph_.NameOf(item.tensor);
  }

  // The next read, which the buffer is held for.
  std::string NextReadText(const LiveAtPeak& item) const {
    if (item.is_used) return "used at the peak";
    if (item.next_read < 0) return "-";
    return traced_.NameOfStep(static_cast<size_t>(item.next_read));
  }

  void WriteLive(const PeakExplanation& peak) {
    if (peak.live.empty()) return;
    TextTable table;
    table.columns = {{"largest", false, TableColumn::Fit::kElide},
                     {"what"},
                     {"bytes", true},
                     {"steps", true, TableColumn::Fit::kWhole, 1},
                     {"waits for", false, TableColumn::Fit::kElide}};
    const size_t shown =
        screen_.is_verbose ? peak.live.size() : std::min(peak.live.size(), kTensorRows);
    Bytes rest;
    for (size_t i = 0; i < peak.live.size(); ++i) {
      const LiveAtPeak& item = peak.live[i];
      if (i >= shown) {
        rest += item.bytes;
        continue;
      }
      table.rows.push_back({NameOfLive(item), KindText(item.kind), HumanBytes(item.bytes),
                            fmt::format("{}-{}", item.since, item.until), NextReadText(item)});
    }
    if (peak.live.size() > shown) {
      table.rows.push_back({Others(peak.live.size() - shown), "", HumanBytes(rest), "", ""});
    }
    Table(table);
  }

  void WriteReleases(const PeakExplanation& peak) {
    text_ += '\n';
    if (!peak.can_release) {
      return Row("next",
                 "the plan frees a whole segment at a time, so no single tensor can be freed");
    }
    const bool may_move = traced_.plan.request.offload.has_value();
    if (peak.next.empty()) {
      return Row("next", fmt::format("nothing kept over the peak could be recomputed{} later",
                                     may_move ? " or copied back" : ""));
    }
    const bool helps = peak.next.front().then.peak < peak.bytes;
    Row("next",
        !helps ? "freeing any single tensor leaves the peak as it is; the largest are"
               : fmt::format(
                     "to lower the peak, free one of these and recompute it{} before its next use",
                     may_move ? " or copy it back" : ""));
    TextTable table;
    table.columns = {{"released", false, TableColumn::Fit::kElide},
                     {"bytes", true},
                     {"peak then", true},
                     {"change", true},
                     {"time", true}};
    if (may_move) table.columns.push_back({"then"});
    const size_t shown =
        screen_.is_verbose ? peak.next.size() : std::min(peak.next.size(), kReleaseRows);
    for (size_t i = 0; i < shown; ++i) {
      const Release& release = peak.next[i];
      const LiveAtPeak& item = peak.live[release.live];
      table.rows.push_back({NameOfLive(item), HumanBytes(item.bytes), HumanBytes(release.then.peak),
                            SignedBytes(release.then.peak - peak.bytes),
                            TimeText(Added(release.then))});
      if (may_move) table.rows.back().emplace_back(release.is_moved ? "copied" : "run again");
    }
    text_ += table.Text(2, screen_.out.table_width());
    if (peak.unmeasured > 0) {
      Row("", fmt::format("{} smaller tensors were not tried", peak.unmeasured));
    }
  }

  void WriteBounds(const PeakExplanation& peak) {
    if (traced_.steps().empty()) return;
    text_ += '\n';
    Row("at least", fmt::format("{} alone needs {}: no plan{} has a lower peak",
                                StepText(peak.largest.step), HumanBytes(peak.largest.bytes),
                                graph_.is_joint() ? "" : " with this order of backward steps"));
    std::string_view label = "bounds";
    for (const std::string& text : BoundTexts(figures_)) Row(std::exchange(label, ""), text);
    if (figures_.certificate || !figures_.lower_bound_cost) return;
    Row("bounds", fmt::format("time {} or more", TimeText(*figures_.lower_bound_cost)));
  }
};

}  // namespace

std::string PeakText(const Source& source, const TracedPlan& traced, const PeakExplanation& peak,
                     const Screen& screen) {
  return PeakWriter(source, traced, screen).Text(peak);
}

}  // namespace ckplan
