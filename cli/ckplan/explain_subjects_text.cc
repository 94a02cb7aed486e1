#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/ckplan/explain_text.h"
#include "cli/ckplan/plan_summary.h"
#include "lib/base/text.h"
#include "lib/planning/plan/diff.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

constexpr size_t kDetailedSubjects = 3;
constexpr size_t kListedSteps = 8;

class SubjectsWriter : ExplanationWriter {
 public:
  SubjectsWriter(const Source& source, const TracedPlan& traced, const Screen& screen)
      : ExplanationWriter(source, traced, screen) {}

  std::string Text(const std::vector<ExplainedSubject>& subjects) && {
    if (subjects.size() > kDetailedSubjects) {
      WriteTable(subjects);
    } else {
      for (const ExplainedSubject& subject : subjects) WriteSubject(subject);
    }
    return std::move(text_);
  }

 private:
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
        Row("alias", fmt::format("{} shares the memory of {}", graph_.NameOf(subject.tensors[i]),
                                 graph_.NameOf(tensor.tensor)));
      }
      if (is_node) Row("output", graph_.NameOf(tensor.tensor));
      const NodeId producer = graph_.ProducerOf(tensor.tensor);
      if (!is_node && !producer.is_none()) WriteNode(producer, false);
      WriteTensor(tensor);
    }
  }

  void WriteAbsent(const Subject& subject) {
    switch (subject.absent->kind) {
      case AbsentValue::Kind::kView:
        return Row("view", "it has no memory of its own: it's a view of " +
                               graph_.NameOf(subject.tensors.front()));
      case AbsentValue::Kind::kConstant:
        return Row("constant",
                   "a parameter, or computed only from parameters: it exists before the step and "
                   "counts as a constant");
      case AbsentValue::Kind::kUnread:
        return Row("unread", "nothing in the training step reads it, so it isn't computed");
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
    WriteCopies(tensor);
    if (tensor.if_kept) {
      const std::string_view instead =
          tensor.copies.empty() ? "instead of run again at" : "on the device until";
      Row("if kept", fmt::format("{} {}: {}", instead, StepText(ReturnStep(tensor)),
                                 Outcome(*tensor.if_kept)));
    }
    Row("so", SentenceOf(tensor));
  }

  // The step at which a tensor that is not kept comes back, or the end.
  size_t ReturnStep(const TensorExplanation& tensor) const {
    const auto last = static_cast<int32_t>(traced_.steps().size()) - 1;
    return static_cast<size_t>(tensor.again_at.value_or(last));
  }

  void WriteCopies(const TensorExplanation& tensor) {
    std::string_view label = "on host";
    for (const LinkCopy& copy : tensor.copies) {
      const Cost duration = copy.end - copy.begin;
      Row(std::exchange(label, ""),
          fmt::format("copied {} at step {}, in {:.1f}% of a step: from {:.1f}% to {:.1f}%",
                      copy.way == CopyWay::kOut ? "out" : "back", copy.step,
                      100 * Ratio(duration.count(), StepCost().count()),
                      100 * Ratio(copy.begin.count(), StepCost().count()),
                      100 * Ratio(copy.end.count(), StepCost().count())));
    }
  }

  void WriteIfFreed(const TensorExplanation& tensor) {
    const TensorExplanation::Gap& gap = *tensor.gap;
    Row("if freed", fmt::format("after step {}, and run again before {}: {}", gap.from,
                                StepText(static_cast<size_t>(gap.to)), Outcome(*tensor.if_freed)));
  }

  // "peak 210.00 MiB (-12.06 MiB), time +0.9%"
  std::string Outcome(const Simulation& then) const {
    return fmt::format("peak {} ({}), time {}", HumanBytes(then.peak),
                       SignedBytes(then.peak - figures_.peak), TimeText(Added(then)));
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
        return "no plan changes it: it is an input, or counts as a constant";
      case Reason::kEmpty:
        return "it has no bytes";
      case Reason::kNeverMade:
        return "it is never computed, since no result needs it";
      case Reason::kUsedAtOnce:
        return "nothing to decide: it is in memory only while it is computed and read";
      case Reason::kMustNotRepeat:
        return "it is kept, since an operation that it depends on must not run twice";
      case Reason::kToBeKept:
        return "it is kept by --keep";
      case Reason::kToRunOnce:
        return "it is kept, since --never-rerun covers the operation that makes it";
      case Reason::kToBeRecomputed:
        return "it is recomputed because of --recompute";
      case Reason::kNotMeasured:
        return traced_.plan.schedule.frees == FreePolicy::kLiveness
                   ? "effects were not measured: too many tensors at once"
                   : "the plan frees a whole segment at a time, not single tensors";
      case Reason::kElsewhere:
        if (tensor.gap->is_at_peak) {
          return "it is kept: freeing it leaves the peak as it is, since other actions need as "
                 "much";
        }
        return fmt::format("it is kept: freeing it does not lower the peak, where it is {}",
                           IsAtPeak(tensor) ? "in use" : "not in memory");
      case Reason::kRaisesPeak:
        return "it is kept: running it again needs more at once than keeping it";
      case Reason::kInBudget:
        return fmt::format("it is kept: the plan fits in {} without recomputing it",
                           HumanBytes(budget));
      case Reason::kTraded:
        return fmt::format("it is kept: freeing it saves {} of the peak for {} of a step",
                           HumanBytes(figures_.peak - tensor.if_freed->peak),
                           TimeText(Added(*tensor.if_freed)));
      case Reason::kOverBudget:
        return fmt::format("it is recomputed: keeping it would exceed the budget of {1} by {0}",
                           HumanBytes(tensor.if_kept->peak - budget), HumanBytes(budget));
      case Reason::kHigherPeak:
        return fmt::format("it is recomputed: keeping it would raise the peak by {}",
                           HumanBytes(tensor.if_kept->peak - figures_.peak));
      case Reason::kAffordable:
        return fmt::format(
            "it is recomputed, though keeping it also fits and saves {:.1f}% of a step; try "
            "another algorithm",
            100 * Ratio(-Added(*tensor.if_kept).count(), StepCost().count()));
      case Reason::kMoved:
        return WhyMoved(tensor, budget);
    }
    return "";
  }

  std::string WhyMoved(const TensorExplanation& tensor, Bytes budget) const {
    if (!tensor.if_kept) return "it is moved to the host";
    const Bytes peak = tensor.if_kept->peak;
    const Cost saves = Cost(0) - Added(*tensor.if_kept);
    const std::string saved =
        saves == Cost(0)
            ? "no time"
            : fmt::format("{:.1f}% of a step", 100 * Ratio(saves.count(), StepCost().count()));
    if (budget > Bytes(0) && peak > budget) {
      return fmt::format(
          "it is offloaded: keeping it on the device would exceed the budget of {1} by {0}, and "
          "save {2}",
          HumanBytes(peak - budget), HumanBytes(budget), saved);
    }
    if (peak > figures_.peak) {
      return fmt::format(
          "it is offloaded: keeping it on the device would raise the peak by {}, and save {}",
          HumanBytes(peak - figures_.peak), saved);
    }
    return fmt::format("it is offloaded, though keeping it on the device also fits and saves {}",
                       saved);
  }

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
    Note(
        "if changed: how the peak changes if the tensor is freed instead of kept, or kept instead "
        "of recomputed; time: what that adds");
  }

  // The text for subjects that have no memory in a step.
  static std::vector<std::string> EmptyRow(const Subject& subject) {
    const bool is_unread =
        subject.absent != nullptr && subject.absent->kind == AbsentValue::Kind::kUnread;
    const std::string_view action = subject.absent == nullptr ? "no output"
                                    : is_unread               ? "not made"
                                                              : "constant";
    return {subject.name, "-", std::string(action), "-", "no", "-", "-", "-"};
  }

  std::string ActionWord(const TensorExplanation& tensor, NodeId producer) const {
    if (!tensor.copies.empty()) return "move";
    return producer.is_none() ? "given"
                              : std::string(NameOf(traced_.plan.decisions[producer].action));
  }

  std::vector<std::string> RowOf(const ExplainedSubject& explained, size_t i) const {
    const TensorExplanation& tensor = explained.tensors[i];
    const NodeId producer = graph_.ProducerOf(tensor.tensor);
    const std::optional<Simulation>& then = tensor.if_kept ? tensor.if_kept : tensor.if_freed;
    const std::string name = explained.subject.absent != nullptr
                                 ? explained.subject.name
                                 : graph_.NameOf(explained.subject.tensors[i]);
    return {name,
            producer.is_none() ? "-" : std::string(graph_.OpOf(producer)),
            ActionWord(tensor, producer),
            HumanBytes(graph_.BytesOf(tensor.tensor)),
            IsAtPeak(tensor) ? "yes" : "no",
            then ? SignedBytes(then->peak - figures_.peak) : "-",
            then ? TimeText(Added(*then)) : "-",
            std::string(NameOf(tensor.reason))};
  }
};

}  // namespace

std::string SubjectsText(const Source& source, const TracedPlan& traced,
                         const std::vector<ExplainedSubject>& subjects, const Screen& screen) {
  return SubjectsWriter(source, traced, screen).Text(subjects);
}

}  // namespace ckplan
