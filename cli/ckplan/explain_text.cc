#include "cli/ckplan/explain_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/ckplan/device_text.h"
#include "cli/ckplan/plan_summary.h"
#include "cli/common/text_table.h"
#include "lib/base/human_bytes.h"
#include "lib/base/printable.h"
#include "lib/plan/diff.h"

namespace ckplan {
namespace {

constexpr size_t kModuleRows = 10;
constexpr size_t kTensorRows = 10;
constexpr size_t kReleaseRows = 5;
constexpr size_t kDetailedSubjects = 3;
constexpr size_t kListedSteps = 8;
constexpr size_t kIndent = 13;

std::string Share(Bytes part, Bytes whole) {
  return fmt::format("{:.1f}%", 100 * Ratio(part.count(), whole.count()));
}

std::string Plural(size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

class ExplanationWriter {
 public:
  ExplanationWriter(const Source& source, const TracedPlan& traced, const Screen& screen)
      : source_(source),
        traced_(traced),
        graph_(traced.graph),
        f_(traced.plan.figures),
        screen_(screen) {}

  std::string Peak(const PeakExplanation& peak) && {
    WriteHead();
    WriteMoment(peak);
    WriteKinds(peak);
    WriteModules(peak);
    WriteLive(peak);
    WriteReleases(peak);
    WriteBounds(peak);
    return std::move(text_);
  }

  std::string Subjects(const std::vector<ExplainedSubject>& subjects) && {
    WriteHead();
    if (subjects.size() > kDetailedSubjects) {
      WriteTable(subjects);
    } else {
      for (const ExplainedSubject& subject : subjects) WriteSubject(subject);
    }
    return std::move(text_);
  }

 private:
  // ---- What both begin with -------------------------------------------------------------------

  void WriteHead() {
    text_ +=
        fmt::format("ckplan {}   {}\n", CKPLAN_VERSION, ModelLine(source_, traced_.plan.request));
    const Bytes budget = traced_.plan.request.budget.in_bytes().value_or(Bytes(0));
    const bool has_budget = traced_.plan.request.budget.in_bytes().has_value();
    Row("plan", fmt::format("{}: peak {} ({}){}, time {} of a step", traced_.plan.request.algorithm,
                            HumanBytes(f_.peak),
                            SignedPercent(Ratio((f_.peak - f_.baseline_peak).count(),
                                                f_.baseline_peak.count())),
                            has_budget ? fmt::format(" of a budget of {}", HumanBytes(budget)) : "",
                            SignedPercent(StepOverheadRatio(f_))));
    if (!traced_.plan.request.pipeline) return;
    Row("in flight", fmt::format("{}; steps are those of one, peaks are with all",
                                 InFlightText(traced_.plan.request)));
  }

  void Row(std::string_view label, std::string_view value) {
    const size_t width = screen_.out.table_width();
    const size_t rest =
        width == TextTable::kAnyWidth || width <= 2 * kIndent ? width : width - kIndent;
    for (const std::string& line : Wrapped(Printable(value), rest)) {
      text_ += fmt::format("  {:<10} {}\n", std::exchange(label, ""), line);
    }
  }

  void Table(const TextTable& table) { text_ += '\n' + table.Text(2, screen_.out.table_width()); }

  // "step 61 (backward of conv1)"
  std::string StepText(size_t step) const {
    return fmt::format("step {} ({})", step, Printable(traced_.NameOfStep(step), kLongestName));
  }

  Cost StepCost() const { return f_.forward_cost + f_.backward_cost; }
  std::string TimeText(Cost cost) const {
    return SignedPercent(Ratio(cost.count(), StepCost().count()));
  }
  Cost Added(const Measured& then) const { return then.overhead - f_.overhead; }

  std::string KindText(MemoryKind kind) const {
    const bool is_value = graph_.is_joint() && kind == MemoryKind::kGradients;
    return is_value ? "backward" : std::string(NameOf(kind));
  }

  // ---- The peak -------------------------------------------------------------------------------

  void WriteMoment(const PeakExplanation& peak) {
    if (traced_.steps().empty()) return Row("peak at", "the plan has no steps");
    Row("peak at",
        fmt::format(
            "{} of {}{}", StepText(peak.step), traced_.steps().size(),
            peak.equal_steps > 1 ? fmt::format("; {} steps need as much", peak.equal_steps) : ""));
    Bytes gradients;
    if (!graph_.is_joint()) {
      gradients = peak.by_kind[static_cast<size_t>(MemoryKind::kGradients)];
    }
    std::string text = fmt::format("it reads and makes {} itself", HumanBytes(peak.used));
    if (gradients > Bytes(0)) text += fmt::format(", {} are gradients", HumanBytes(gradients));
    const Bytes held = peak.bytes - peak.other_micro_batches - peak.used - gradients;
    Row("", fmt::format("{}, and {} is held for later", text,
                        held == Bytes(0) ? "nothing" : HumanBytes(held)));
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

  static std::string Others(size_t count) { return fmt::format("[{}]", Plural(count, "other")); }

  std::string NameOfLive(const LiveAtPeak& item) const {
    if (item.holds == BufferKind::kWorkspace) return graph_.NameOf(item.node);
    return graph_.NameOf(item.tensor);
  }

  // When it is read next, which is what it waits for.
  std::string Waiting(const LiveAtPeak& item) const {
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
                            fmt::format("{}-{}", item.since, item.until), Waiting(item)});
    }
    if (peak.live.size() > shown) {
      table.rows.push_back({Others(peak.live.size() - shown), "", HumanBytes(rest), "", ""});
    }
    Table(table);
  }

  void WriteReleases(const PeakExplanation& peak) {
    text_ += '\n';
    if (!peak.can_release) {
      return Row("next", "the plan releases a segment at a time, so no tensor goes alone");
    }
    if (peak.next.empty()) {
      return Row("next", "nothing is held over the peak that could be run again later");
    }
    const bool helps = peak.next.front().then.peak < peak.bytes;
    Row("next", helps ? "what would have to go: one of these, run again before it is read next"
                      : "no single tensor that goes lowers the peak; the nearest are");
    TextTable table;
    table.columns = {{"released", false, TableColumn::Fit::kElide},
                     {"bytes", true},
                     {"peak then", true},
                     {"change", true},
                     {"time", true}};
    const size_t shown =
        screen_.is_verbose ? peak.next.size() : std::min(peak.next.size(), kReleaseRows);
    for (size_t i = 0; i < shown; ++i) {
      const Release& release = peak.next[i];
      const LiveAtPeak& item = peak.live[release.live];
      table.rows.push_back({NameOfLive(item), HumanBytes(item.bytes), HumanBytes(release.then.peak),
                            SignedBytes(release.then.peak - peak.bytes),
                            TimeText(Added(release.then))});
    }
    text_ += table.Text(2, screen_.out.table_width());
    if (peak.unmeasured > 0) {
      Row("", fmt::format("{} smaller ones were not tried", peak.unmeasured));
    }
  }

  void WriteBounds(const PeakExplanation& peak) {
    if (traced_.steps().empty()) return;
    text_ += '\n';
    Row("at least", fmt::format("{} needs {} by itself: no plan{} has a lower peak",
                                StepText(peak.largest.step), HumanBytes(peak.largest.bytes),
                                graph_.is_joint() ? "" : " with this order of backward steps"));
    std::string_view label = "bounds";
    for (const std::string& text : BoundTexts(f_)) Row(std::exchange(label, ""), text);
    if (f_.certificate || !f_.lower_bound_cost) return;
    Row("bounds", fmt::format("time {} or more", TimeText(*f_.lower_bound_cost)));
  }

  // ---- Tensors and nodes ----------------------------------------------------------------------

  std::string ActionText(NodeId node) const {
    const NodeDecision& decision = traced_.plan.decisions[node];
    if (decision.action == NodeAction::kDrop) return "drop: never runs";
    const int32_t runs = decision.recompute_count + 1;
    return fmt::format("{}: runs {}{}", NameOf(decision.action),
                       graph_.is_joint() ? "" : "forward ",
                       runs == 1 ? "once" : fmt::format("{} times", runs));
  }

  void WriteNode(NodeId node, bool is_subject) {
    const std::vector<std::string> modules = graph_.ModulesOf(node);
    const std::string op(graph_.OpOf(node));
    std::string text = is_subject ? op : graph_.NameOf(node);
    if (!is_subject && !op.empty()) text += fmt::format(" ({})", op);
    if (!modules.empty()) text += fmt::format("{}in {}", text.empty() ? "" : ", ", modules.back());
    if (!text.empty()) Row(is_subject ? "operator" : "made by", text);
    Row(is_subject ? "action" : "",
        fmt::format("{}; a run takes {:.1f}% of a step", ActionText(node),
                    100 * Ratio(graph_.RunCostOf(node).count(), StepCost().count())));
  }

  void WriteSubject(const ExplainedSubject& explained) {
    const Subject& subject = explained.subject;
    text_ += '\n';
    const bool is_node = !subject.node.is_none();
    text_ += Styled(fmt::format("{} {}", is_node ? "node" : "tensor",
                                Printable(subject.name, kLongestName)),
                    TextStyle::kBold, screen_.out) +
             '\n';
    if (subject.absent != nullptr) WriteAbsent(subject);
    if (is_node) WriteNode(subject.node, true);
    for (size_t i = 0; i < subject.tensors.size(); ++i) {
      const TensorExplanation& tensor = explained.tensors[i];
      if (tensor.tensor != subject.tensors[i]) {
        Row("alias", fmt::format("{} is in the memory of {}", graph_.NameOf(subject.tensors[i]),
                                 graph_.NameOf(tensor.tensor)));
      }
      if (is_node) Row("output", graph_.NameOf(tensor.tensor));
      const NodeId maker = graph_.MakerOf(tensor.tensor);
      if (!is_node && !maker.is_none()) WriteNode(maker, false);
      WriteTensor(tensor);
    }
  }

  void WriteAbsent(const Subject& subject) {
    switch (subject.absent->kind) {
      case AbsentValue::Kind::kView:
        return Row("view", "it has no memory of its own: it is a view of " +
                               graph_.NameOf(subject.tensors.front()));
      case AbsentValue::Kind::kConstant:
        return Row("constant",
                   "a parameter, or computed from parameters alone: it is there before the step, "
                   "and counted with the constants");
      case AbsentValue::Kind::kUnread:
        return Row("unread", "nothing of a training step reads it, so it is not made");
    }
  }

  void WriteTensor(const TensorExplanation& tensor) {
    Row("size", HumanBytes(graph_.BytesOf(tensor.tensor)));
    std::string_view label = "in memory";
    for (const Stay& stay : tensor.stays) {
      Row(std::exchange(label, ""),
          fmt::format("steps {} to {}{}, {}; read at {}", stay.since, stay.until,
                      stay.is_at_peak ? ", the peak among them" : "", KindText(stay.kind),
                      StepList(stay.reads)));
    }
    if (tensor.gap && tensor.if_freed) WriteIfFreed(tensor);
    if (tensor.if_kept) {
      Row("if kept",
          fmt::format("instead of run again at {}: {}",
                      StepText(static_cast<size_t>(*tensor.again_at)), Outcome(*tensor.if_kept)));
    }
    Row("so", SentenceOf(tensor));
  }

  void WriteIfFreed(const TensorExplanation& tensor) {
    const TensorExplanation::Gap& gap = *tensor.gap;
    Row("if freed", fmt::format("behind step {}, and run again before {}: {}", gap.from,
                                StepText(static_cast<size_t>(gap.to)), Outcome(*tensor.if_freed)));
  }

  // "peak 210.00 MiB (-12.06 MiB), time +0.9%"
  std::string Outcome(const Measured& then) const {
    return fmt::format("peak {} ({}), time {}", HumanBytes(then.peak),
                       SignedBytes(then.peak - f_.peak), TimeText(Added(then)));
  }

  static std::string StepList(const std::vector<int32_t>& steps) {
    if (steps.empty()) return "no step";
    std::string text = steps.size() == 1 ? "step" : "steps";
    for (size_t i = 0; i < std::min(steps.size(), kListedSteps); ++i) {
      text += fmt::format("{} {}", i == 0 ? "" : ",", steps[i]);
    }
    if (steps.size() > kListedSteps)
      text += fmt::format(" and {} more", steps.size() - kListedSteps);
    return text;
  }

  static bool IsAtPeak(const TensorExplanation& tensor) {
    return std::any_of(tensor.stays.begin(), tensor.stays.end(),
                       [](const Stay& stay) { return stay.is_at_peak; });
  }

  std::string SentenceOf(const TensorExplanation& tensor) const {
    const Bytes budget = traced_.plan.request.budget.in_bytes().value_or(Bytes(0));
    switch (tensor.reason) {
      case Reason::kGiven:
        return "no plan changes it: it is given from outside, or counted with the constants";
      case Reason::kEmpty:
        return "it has no bytes";
      case Reason::kNeverMade:
        return "it is never made, since no result needs it";
      case Reason::kUsedAtOnce:
        return "there is nothing to decide: it is in memory only while it is made and read";
      case Reason::kMustNotRepeat:
        return "it is kept, since something that makes it must not run twice";
      case Reason::kToBeKept:
        return "it is kept by --keep";
      case Reason::kToRunOnce:
        return "it is kept, since what makes it runs once by --never-rerun";
      case Reason::kToBeRecomputed:
        return "it is recomputed by --recompute";
      case Reason::kNotMeasured:
        return traced_.plan.schedule.frees == FreePolicy::kLiveness
                   ? "what changes was not measured, as too much was asked for at once"
                   : "the plan releases a segment at a time, so no tensor is decided on alone";
      case Reason::kElsewhere:
        if (tensor.gap->is_at_peak) {
          return "it is kept: without it other steps still need as much as the peak";
        }
        return fmt::format("it is kept: freeing it does not lower the peak, where it is {}",
                           IsAtPeak(tensor) ? "in use" : "not in memory");
      case Reason::kRaisesPeak:
        return "it is kept: running it again needs more at once than keeping it";
      case Reason::kInBudget:
        return fmt::format(
            "it is kept: the budget of {} holds without freeing it, which takes time",
            HumanBytes(budget));
      case Reason::kTraded:
        return fmt::format("it is kept: freeing it saves {} of the peak for {} of a step",
                           HumanBytes(f_.peak - tensor.if_freed->peak),
                           TimeText(Added(*tensor.if_freed)));
      case Reason::kOverBudget:
        return fmt::format("it is run again: kept, the plan would be {} over its budget of {}",
                           HumanBytes(tensor.if_kept->peak - budget), HumanBytes(budget));
      case Reason::kHigherPeak:
        return fmt::format("it is run again: kept, the peak would be {} higher",
                           HumanBytes(tensor.if_kept->peak - f_.peak));
      case Reason::kAffordable:
        return fmt::format(
            "it is run again, though it need not be: kept, the plan fits as well and "
            "saves {:.1f}% of a step; another algorithm may do so",
            100 * Ratio(-Added(*tensor.if_kept).count(), StepCost().count()));
    }
    return "";
  }

  // ---- Many of them ---------------------------------------------------------------------------

  void WriteTable(const std::vector<ExplainedSubject>& subjects) {
    TextTable table;
    table.columns = {{"tensor", false, TableColumn::Fit::kElide},
                     {"op", false, TableColumn::Fit::kWhole, 1},
                     {"action"},
                     {"bytes", true},
                     {"at peak", false, TableColumn::Fit::kWhole, 2},
                     {"if changed", true, TableColumn::Fit::kWhole, 3},
                     {"time", true, TableColumn::Fit::kWhole, 3},
                     {"why", false, TableColumn::Fit::kWrap}};
    for (const ExplainedSubject& explained : subjects) {
      for (size_t i = 0; i < explained.tensors.size(); ++i) {
        table.rows.push_back(RowOf(explained, i));
      }
      if (explained.tensors.empty()) table.rows.push_back(EmptyRow(explained.subject));
    }
    Table(table);
    text_ +=
        "\n  if changed: how the peak moves if it is released where it is held, or kept where it "
        "is run again; time: what that adds\n";
  }

  // Of what has no memory in a step.
  static std::vector<std::string> EmptyRow(const Subject& subject) {
    const bool is_unread =
        subject.absent != nullptr && subject.absent->kind == AbsentValue::Kind::kUnread;
    const std::string_view action = subject.absent == nullptr ? "no output"
                                    : is_unread               ? "not made"
                                                              : "constant";
    return {subject.name, "-", std::string(action), "-", "no", "-", "-", "-"};
  }

  std::vector<std::string> RowOf(const ExplainedSubject& explained, size_t i) const {
    const TensorExplanation& tensor = explained.tensors[i];
    const NodeId maker = graph_.MakerOf(tensor.tensor);
    const std::optional<Measured>& then = tensor.if_kept ? tensor.if_kept : tensor.if_freed;
    const std::string name = explained.subject.absent != nullptr
                                 ? explained.subject.name
                                 : graph_.NameOf(explained.subject.tensors[i]);
    return {name,
            maker.is_none() ? "-" : std::string(graph_.OpOf(maker)),
            maker.is_none() ? "given" : std::string(NameOf(traced_.plan.decisions[maker].action)),
            HumanBytes(graph_.BytesOf(tensor.tensor)),
            IsAtPeak(tensor) ? "yes" : "no",
            then ? SignedBytes(then->peak - f_.peak) : "-",
            then ? TimeText(Added(*then)) : "-",
            std::string(NameOf(tensor.reason))};
  }

  const Source& source_;
  const TracedPlan& traced_;
  const PlannedGraph& graph_;
  const PlanFigures& f_;
  const Screen& screen_;
  std::string text_;
};

}  // namespace

std::string PeakText(const Source& source, const TracedPlan& traced, const PeakExplanation& peak,
                     const Screen& screen) {
  return ExplanationWriter(source, traced, screen).Peak(peak);
}

std::string SubjectsText(const Source& source, const TracedPlan& traced,
                         const std::vector<ExplainedSubject>& subjects, const Screen& screen) {
  return ExplanationWriter(source, traced, screen).Subjects(subjects);
}

}  // namespace ckplan
