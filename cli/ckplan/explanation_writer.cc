#include "cli/ckplan/explanation_writer.h"

#include <fmt/format.h>

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

}  // namespace ckplan
