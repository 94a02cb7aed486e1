#include "cli/ckplan/plan_summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "cli/ckplan/request_text.h"
#include "cli/common/command_line.h"
#include "cli/common/request_flags.h"
#include "cli/common/text_table.h"
#include "lib/base/text.h"
#include "lib/planning/explain/traced_plan.h"
#include "lib/planning/plan/added_time.h"
#include "lib/planning/plan/constraints.h"
#include "lib/planning/plan/knob.h"
#include "lib/planning/plan/request_fields.h"
#include "lib/planning/plan/segment_peaks.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/constants_shortage.h"
#include "lib/planning/planner/registry.h"

namespace ckplan {
namespace {

constexpr size_t kShownGroups = 3;

// Costs are integers up to 2^52, which a double holds exactly. The ratios are for display only.
double StepOverhead(const PlanFigures& f) {
  return Ratio(f.overhead.count(), (f.forward_cost + f.backward_cost).count());
}
double ForwardOverhead(const PlanFigures& f) {
  return Ratio(f.overhead.count(), f.forward_cost.count());
}
double PeakChange(const PlanFigures& f) {
  return Ratio((f.peak - f.baseline_peak).count(), f.baseline_peak.count());
}

// A bar such as "███████▌······": the share of a whole in `width` characters, in eighths of one.
std::string Bar(double share, int width) {
  constexpr std::string_view kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double bounded = std::clamp(share, 0.0, 1.0);
  const int eighths = static_cast<int>(std::lround(bounded * width * 8));
  std::string bar;
  for (int i = 0; i < eighths / 8; ++i) bar += "█";
  bar += kEighths[eighths % 8];
  const int used = (eighths + 7) / 8;
  for (int i = used; i < width; ++i) bar += "·";
  return bar;
}

std::string Plural(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

PlanFacts FactsOfPlan(const Source& source, const Plan& plan) {
  return FactsOf(source.step(), plan);
}

std::string RunsText(size_t op_count, const PlanFacts& facts) {
  if (facts.dropped > 0) {
    const PlanFacts others{.run_twice = facts.run_twice, .run_more_often = facts.run_more_often};
    return fmt::format("{}, {} never", RunsText(op_count, others), facts.dropped);
  }
  if (facts.run_twice + facts.run_more_often == 0) return "nothing is recomputed";
  const std::string more =
      facts.run_more_often == 0 ? "none" : fmt::format("{}", facts.run_more_often);
  return fmt::format("{} of {} ops run twice, {} more often", facts.run_twice, op_count, more);
}

// The proof; the guarantee, which is printed below it, names the class of plans.
std::string_view StatusText(const Plan& plan) {
  if (plan.figures.is_optimal) return "   proven optimal";
  const auto info = FindSolver(plan.request.algorithm);
  const bool may_be_optimal = info.ok() && (*info)->guarantee == Guarantee::kOptimalInClass;
  return may_be_optimal ? "   not proven optimal for this budget" : "";
}

class SummaryWriter {
 public:
  SummaryWriter(const Source& source, const Plan& plan, const SummaryRequest& request,
                const Terminal& terminal)
      : source_(source),
        plan_(plan),
        f_(plan.figures),
        request_(request),
        terminal_(terminal),
        facts_(FactsOfPlan(source, plan)) {}

  // Writes the model, its constants and the curve, but no plan.
  std::string WriteCurveOnly() && {
    WriteModel();
    WriteConstants();
    WriteCurve(/*marks_plan=*/false);
    return std::move(text_);
  }

  std::string Write() && {
    WriteModel();
    text_ += '\n';
    WritePlan();
    WriteBudget();
    if (plan_.request.activation_type != ActivationType::kOfModel) {
      Row("stored", fmt::format("activations and their gradients as {} (--activation-type)",
                                NameOf(plan_.request.activation_type)));
    }
    if (const std::string obeys = Constraints(); !obeys.empty()) {
      Row("obeys", Printable(obeys, kLongestName));
    }
    ListRow("ends at", plan_.request.outputs, "--outputs");
    ListRow("weights", plan_.request.weights, "--weights");
    ListRow("set", plan_.request.set_inputs, "--set");
    ListRow("operators", plan_.request.op_shapes, "--op-shape");
    ListRow("frozen", plan_.request.freeze, "--freeze");
    WriteStage();
    if (plan_.request.sharding) {
      Row("divided",
          fmt::format("constants, as {} on each of {} devices (--shard)",
                      kShardingSystems[static_cast<size_t>(plan_.request.sharding->system)],
                      plan_.request.sharding->devices));
    }
    if (!plan_.request.uses_liveness) Row("frees", "without liveness (--no-liveness)");
    if (plan_.request.backward == BackwardSteps::kByInput) {
      Row("backward", "by input, as the papers count memory (--backward by-input)");
    }
    WritePeak();
    // A joint graph need not mark its forward pass.
    Row("time", fmt::format("{} of a training step{}", SignedPercent(StepOverhead(f_)),
                            source_.joint ? ""
                                          : fmt::format(", {} of a forward pass",
                                                        SignedPercent(ForwardOverhead(f_)))));
    WriteSegments();
    WriteOffload();
    WriteBounds();
    Row("runs", RunsText(source_.step().node_count(), facts_));
    WriteKept();
    WriteArena();
    WriteConstants();
    WriteGroups();
    WriteCurve();
    return std::move(text_);
  }

 private:
  static constexpr size_t kIndent = 13;

  // The model, and the step that keeps everything.
  void WriteModel() {
    text_ +=
        Folded(fmt::format("ckplan {}   {}\n", CKPLAN_VERSION, ModelLine(source_, plan_.request)),
               terminal_.table_width());
    Row("keep all",
        fmt::format("peak {}{}   time 1.000 (cost model {})", HumanBytes(f_.baseline_peak),
                    WithConstants(", ", f_.baseline_peak), plan_.request.cost_model));
  }

  // ", 5.55 GiB with constants"
  std::string WithConstants(std::string_view separator, Bytes bytes) const {
    if (request_.limit == SummaryLimit::kNeed) return "";
    return fmt::format("{}{} with constants", separator, HumanBytes(bytes + TotalConstants(f_)));
  }

  void AddStyledRow(std::string_view label, std::string_view value) {
    text_ += fmt::format("  {:<10} {}\n", label, value);
  }

  // A terminal breaks a long text between words; a file or a pipe gets it whole.
  // A list that the user typed, if there is one.
  void ListRow(std::string_view title, const std::vector<std::string>& list,
               std::string_view flag) {
    if (list.empty()) return;
    Row(title, fmt::format("{} ({})",
                           Printable(fmt::format("{}", fmt::join(list, " ")), kLongestName), flag));
  }

  void Row(std::string_view label, std::string_view value) {
    if (!terminal_.is_tty) return AddStyledRow(label, Printable(value));
    for (const std::string& line : Wrapped(Printable(value), value_width())) {
      AddStyledRow(std::exchange(label, ""), line);
    }
  }

  size_t value_width() const { return static_cast<size_t>(terminal_.width) - kIndent; }

  void WritePlan() {
    const bool is_memory_centric = plan_.request.objective == Objective::kMemory;
    std::string plan = fmt::format("{}{}{}", plan_.request.algorithm,
                                   is_memory_centric ? ", memory-centric" : "", StatusText(plan_));
    if (terminal_.is_tty && request_.solve_seconds) {
      plan += fmt::format("   {:.2f} s", *request_.solve_seconds);
    }
    std::string_view label = "plan";
    for (const std::string& line : Wrapped(plan, terminal_.is_tty ? value_width() : plan.size())) {
      AddStyledRow(std::exchange(label, ""), Styled(line, TextStyle::kBold, terminal_));
    }
    if (!f_.guarantee.empty()) Row("", f_.guarantee);
  }

  // The constraints as flags: "--keep op:Softmax --keep layer1*".
  std::string Constraints() const {
    std::vector<std::string> flags;
    for (const RequestField& field : RequestFields()) {
      const bool is_satisfied = field.part == RequestField::Part::kPlan &&
                                field.scope.in_tables == FieldScope::InTables::kPatterns;
      if (!is_satisfied) continue;
      for (const std::string& pattern : TextsOf(field, plan_.request)) {
        flags.push_back(FlagOf(std::string(field.name)) + " " + pattern);
      }
    }
    return fmt::format("{}", fmt::join(flags, " "));
  }

  void WriteBudget() {
    const Bytes budget = plan_.request.budget.bytes;
    if (plan_.request.paper_budget.is_given()) {
      Row("budget", fmt::format("{} on the paper's own objective",
                                HumanBytes(plan_.request.paper_budget.bytes)));
    } else if (!plan_.request.budget.is_given()) {
      const bool is_own = plan_.request.setting || plan_.request.decisions;
      const bool is_by_best = plan_.request.algorithm == kBestAlgorithm;
      Row("budget", is_own       ? std::string("none")
                    : is_by_best ? ChoiceText()
                                 : "none: the paper's own choice");
    } else {
      std::string text = HumanBytes(budget);
      if (request_.limit == SummaryLimit::kTotal) text += WithConstants(", ", budget);
      if (!request_.budget_text.empty()) text += fmt::format("   ({})", request_.budget_text);
      Row("budget", text);
    }
    WriteSetting();
  }

  // Says how the plan was chosen from its curve.
  std::string ChoiceText() const {
    const Cost step = f_.forward_cost + f_.backward_cost;
    return fmt::format(
        "none: {}", f_.overhead <= MostAdded(kAddedPercentWithoutBudget, step)
                        ? fmt::format("the lowest peak found that slows a step by at most {:g} %",
                                      kAddedPercentWithoutBudget)
                        : fmt::format("what must be recomputed slows a step by more than {:g} %",
                                      kAddedPercentWithoutBudget));
  }

  // Settings the planner chose are details.
  void WriteSetting() {
    const bool is_given = plan_.request.setting.has_value();
    if (!f_.setting || !(is_given || request_.is_verbose)) return;
    const KnobSetting& setting = *f_.setting;
    const std::string size =
        IsInBytes(setting.knob) ? fmt::format(" bytes, {}", HumanBytes(Bytes(setting.value))) : "";
    Row("knob", fmt::format("{} = {}{}{}", setting.knob, setting.value, size,
                            is_given ? "" : "   (not asked for)"));
  }

  void WritePeak() {
    constexpr int kOtherColumns = 58;
    constexpr int kShortestBar = 8;
    constexpr int kLongestBar = 24;
    const int bar_width = std::min(terminal_.width - kOtherColumns, kLongestBar);
    const std::string bar =
        terminal_.is_tty && bar_width >= kShortestBar
            ? Bar(Ratio(f_.peak.count(), f_.baseline_peak.count()), bar_width) + "  "
            : "";
    const std::string peak =
        fmt::format("{}  {}{}", HumanBytes(f_.peak), bar, SignedPercent(PeakChange(f_)));
    AddStyledRow("peak", Styled(peak, TextStyle::kBold, terminal_) + WithConstants("   ", f_.peak));
    const std::string remark = SavesNothing(f_);
    if (remark.empty()) return;
    for (const std::string& line : Wrapped(remark, value_width())) {
      AddStyledRow("", Styled(line, TextStyle::kWarning, terminal_));
    }
  }

  void WriteStage() {
    if (!plan_.request.pipeline) return;
    const PipelineStage& stage = *plan_.request.pipeline;
    const IdVector<NodeId, Node>& nodes = source_.graph.nodes();
    const std::string first = ShortPrintable(nodes[NodeId(0)].name);
    const std::string last = ShortPrintable(nodes[NodeId(nodes.size() - 1)].name);
    Row("stage",
        fmt::format("{}, from {} to {}, {}", TextOf(stage), first, last,
                    plan_.request.stage_cuts.empty() ? "cut so that the stages take equal time"
                                                     : "cut at --stage-cuts"));
    const int64_t under_way = source_.graph.micro_batches();
    const std::string which = under_way == 2 ? "other" : fmt::format("{} others", under_way - 1);
    const std::string others = under_way == 1 ? ""
                               : f_.other_micro_batches == Bytes(0)
                                   ? ": no other micro-batch saves anything"
                                   : fmt::format(": {} of the peak is saved by the {}",
                                                 HumanBytes(f_.other_micro_batches), which);
    Row("in flight", InFlightText(plan_.request) + others);
  }

  static std::string ShortPrintable(const std::string& name) {
    return Printable(name, kLongestName);
  }

  // The objective of Kusumoto et al. for the user's own lower sets, which no other row shows.
  void WriteSegments() {
    if (source_.joint) return;
    const std::vector<Bytes> peaks = SegmentPeaksOf(source_.graph, plan_);
    if (peaks.empty()) return;
    Row("paper", fmt::format("Eq. 1: {} of a training step   Eq. 2: {}",
                             SignedPercent(Ratio(f_.paper.overhead.count(),
                                                 (f_.forward_cost + f_.backward_cost).count())),
                             HumanBytes(f_.paper.peak)));
    const ByteUnit unit = UnitOf(f_.paper.peak);
    std::vector<std::string> amounts;
    for (const Bytes peak : peaks) amounts.push_back(AmountIn(unit, peak));
    Row("", fmt::format("M^(i) of the segments, in {}: {}", unit.name, fmt::join(amounts, ", ")));
  }

  void WriteOffload() {
    std::string_view label = "offload";
    for (const std::string& text : OffloadTexts(source_.step(), plan_)) {
      Row(std::exchange(label, ""), text);
    }
  }

  void WriteBounds() {
    std::string_view label = "bounds";
    for (const std::string& text : BoundTexts(f_)) Row(std::exchange(label, ""), text);
  }

  void WriteKept() {
    Row("kept", fmt::format("{}, {} of {} at the peak",
                            Plural(facts_.kept_tensors, source_.step().tensor_word()),
                            HumanBytes(facts_.kept), facts_.kept_tensors == 1 ? "it" : "them"));
    Row("peak at", Elided(facts_.peak_step, value_width()));
    std::string parts = fmt::format(
        "kept {} + recomputed {} + {} {}", HumanBytes(facts_.kept), HumanBytes(facts_.recomputed),
        source_.joint ? "backward" : "gradients", HumanBytes(facts_.gradients));
    if (facts_.loaded > Bytes(0)) {
      parts += fmt::format(" + loaded {}", HumanBytes(facts_.loaded));
    }
    if (facts_.passing > Bytes(0)) {
      parts += fmt::format(" + passing {}", HumanBytes(facts_.passing));
    }
    if (facts_.workspace > Bytes(0)) {
      parts += fmt::format(" + workspace {}", HumanBytes(facts_.workspace));
    }
    if (f_.other_micro_batches > Bytes(0)) {
      parts += fmt::format(" + others {}", HumanBytes(f_.other_micro_batches));
    }
    Row("", parts);
  }

  // Shown only if the slab is larger than the peak.
  void WriteArena() {
    const Bytes peak = f_.peak - f_.other_micro_batches;
    if (f_.arena == peak) return;
    Row("arena", fmt::format("{}, {:.2f}% more than the peak", HumanBytes(f_.arena),
                             100 * Ratio((f_.arena - peak).count(), peak.count())));
  }

  // The cost of less memory; without a budget this plan is one of the points.
  void WriteCurve(bool marks_plan = true) {
    if (f_.curve.empty()) return;
    TextTable table;
    table.columns = {
        {"with a budget of", true}, {"change", true}, {"time", true}, {"proven limit", true}, {""}};
    const int64_t step = (f_.forward_cost + f_.backward_cost).count();
    const auto change = [&](Bytes peak) {
      return SignedPercent(Ratio((peak - f_.baseline_peak).count(), f_.baseline_peak.count()));
    };
    for (const CurvePoint& point : f_.curve) {
      const bool is_plan = marks_plan && point.peak == f_.peak && point.overhead == f_.overhead;
      table.rows.push_back({HumanBytes(point.peak), change(point.peak),
                            SignedPercent(Ratio(point.overhead.count(), step)),
                            point.least_peak ? change(*point.least_peak) : "",
                            is_plan ? "this plan" : ""});
    }
    text_ += '\n' + table.Text(2, terminal_.table_width());
  }

  void WriteConstants() {
    if (request_.limit == SummaryLimit::kNeed) return;
    if (TotalConstants(f_) == Bytes(0)) return Row("constants", "none");
    Row("constants", fmt::format("{}: {}", HumanBytes(TotalConstants(f_)),
                                 PartsText(f_.constants, f_.optimizer_state, plan_.request)));
  }

  void WriteGroups() {
    if (facts_.groups.empty()) return;
    const size_t shown =
        request_.is_verbose ? facts_.groups.size() : std::min(kShownGroups, facts_.groups.size());
    TextTable table;
    table.columns = {{"recompute most", false, TableColumn::Fit::kElide},
                     {"ops", true},
                     {"outputs", true},
                     {"time", true}};
    const auto add = [&](std::string name, const RecomputedGroup& group) {
      const int64_t step = (f_.forward_cost + f_.backward_cost).count();
      table.rows.push_back({std::move(name), std::to_string(group.node_count),
                            HumanBytes(group.outputs),
                            SignedPercent(Ratio(group.overhead.count(), step))});
    };
    constexpr size_t kOtherColumns = 40;
    const size_t name_width = std::max(value_width() + kIndent, 2 * kOtherColumns) - kOtherColumns;
    RecomputedGroup rest;
    for (size_t i = 0; i < facts_.groups.size(); ++i) {
      const RecomputedGroup& group = facts_.groups[i];
      if (i < shown) {
        add(Elided(group.name, name_width), group);
        continue;
      }
      rest.node_count += group.node_count;
      rest.outputs += group.outputs;
      rest.overhead += group.overhead;
    }
    const size_t others = facts_.groups.size() - shown;
    if (others > 0) add(fmt::format("[{}]", Plural(static_cast<int64_t>(others), "other")), rest);
    text_ += '\n' + table.Text(2, terminal_.table_width());
  }

  const Source& source_;
  const Plan& plan_;
  const PlanFigures& f_;
  const SummaryRequest& request_;
  const Terminal& terminal_;
  PlanFacts facts_;
  std::string text_;
};

}  // namespace

double Ratio(int64_t part, int64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::vector<std::string> BoundTexts(const PlanFigures& f) {
  if (!f.certificate) return {};
  const Certificate& c = *f.certificate;
  const auto sentence = [](std::string_view bound, std::string_view gap, BoundScope scope,
                           std::string_view proof) {
    return fmt::format("{} or more {}: gap {}   ({})", bound, DescriptionOf(scope), gap, proof);
  };
  const int64_t step = (f.forward_cost + f.backward_cost).count();
  return {
      sentence(fmt::format("time {}", SignedPercent(Ratio(f.lower_bound_cost->count(), step))),
               fmt::format("{:.2f}%", 100 * Ratio(c.gap.count(), step)), c.scope, NameOf(c.proof)),
      sentence(fmt::format("peak {}", HumanBytes(c.peak.bytes)), HumanBytes(c.peak_gap),
               c.peak.scope, NameOf(c.peak.proof))};
}

std::string SignedPercent(double ratio) {
  const std::string text = fmt::format("{:+.1f}%", ratio * 100);
  return text == "+0.0%" || text == "-0.0%" ? "0.0%" : text;
}

std::string SavesNothing(const PlanFigures& f) {
  if (f.peak < f.baseline_peak || (f.peak == f.baseline_peak && f.overhead == Cost(0))) return "";
  const std::string_view needs = f.peak > f.baseline_peak
                                     ? "this is more than keeping everything needs"
                                     : "this is what keeping everything needs";
  const std::string price = f.overhead == Cost(0) ? ""
                                                  : fmt::format(", and costs {} of a training step",
                                                                SignedPercent(StepOverhead(f)));
  return fmt::format("{}: the plan saves nothing{}", needs, price);
}

std::string ModelLine(const Source& source, const PlanRequest& request) {
  std::string line = Printable(source.identity.name, kLongestName);
  for (const auto& [domain, version] : source.identity.opsets) {
    line += domain.empty() ? fmt::format("   opset {}", version)
                           : fmt::format("   {} {}", Printable(domain, kLongestName), version);
  }
  line +=
      "   " + Plural(static_cast<int64_t>(source.step().node_count()), source.step().node_word());
  for (const std::string& text : ModelTexts(request)) {
    line += "   " + Printable(text, kLongestName);
  }
  if (request.pipeline) line += "   " + StageText(request);
  return line;
}

std::string CurveText(const Source& source, const Plan& plan, const Terminal& terminal) {
  const SummaryRequest request;
  return SummaryWriter(source, plan, request, terminal).WriteCurveOnly();
}

std::string PlanText(const Source& source, const Plan& plan, const SummaryRequest& request,
                     const Terminal& terminal) {
  return SummaryWriter(source, plan, request, terminal).Write();
}

}  // namespace ckplan
