#include "lib/files/emit/curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "lib/base/text.h"
#include "lib/files/emit/pareto_svg.h"
#include "lib/planning/explain/traced_plan.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

namespace {

constexpr std::string_view kForwardPhase = "forward";
constexpr std::string_view kBackwardPhase = "backward";
constexpr std::string_view kRecomputedPhase = "recompute";

std::string_view PhaseOf(const TracedPlan& traced, size_t k) {
  const Step& step = traced.steps()[k];
  switch (step.kind) {
    case StepKind::kForward:
      return k < traced.timeline.loss_step ? kForwardPhase : kRecomputedPhase;
    case StepKind::kLoss:
      return "loss";
    case StepKind::kBackward:
      return kBackwardPhase;
    case StepKind::kFree:
    case StepKind::kFreeGradient:
      return "free";
    case StepKind::kRun:
      if (traced.has_run[k]) return kRecomputedPhase;
      return traced.graph.IsBackward(step) ? kBackwardPhase : kForwardPhase;
    case StepKind::kOut:
      return "out";
    case StepKind::kDrop:
      return "drop";
    case StepKind::kIn:
      return "in";
  }
  return "";
}

// Returns the name of the node that runs or whose tensor is freed or copied; "" for the loss.
std::string NodeOf(const TrainingStep& graph, const Step& step) {
  if (step.kind == StepKind::kLoss) return "";
  const bool is_of_tensor = step.is_free() || step.is_transfer();
  return graph.NameOf(is_of_tensor ? graph.ProducerOf(step.tensor()) : step.node());
}

// Traces the curve, leaving the prediction empty.
MemoryCurve CurveOf(const TrainingStep& graph, const Plan& plan, std::string_view predictor) {
  const TracedPlan traced = TracePlan(graph, plan);
  MemoryCurve curve;
  curve.plan = &plan;
  curve.predictor = predictor;
  curve.steps = TraceMemory(traced.timeline, traced.kinds);
  curve.peak_step = traced.timeline.peak_step;
  if (!graph.is_joint()) curve.loss_step = traced.timeline.loss_step;
  for (size_t k = 0; k < traced.steps().size(); ++k) {
    curve.phases.push_back(PhaseOf(traced, k));
    curve.nodes.push_back(NodeOf(graph, traced.steps()[k]));
  }
  curve.predicted.resize(curve.steps.size());
  return curve;
}

void AppendRow(const MemoryCurve& curve, size_t step, size_t kinds, Bytes constants,
               std::string* text) {
  const auto out = std::back_inserter(*text);
  fmt::format_to(out, "{},{},{}", step, curve.phases[step], CsvCell(Printable(curve.nodes[step])));
  const StepMemory& memory = curve.steps[step];
  for (size_t kind = 0; kind < kinds; ++kind) {
    fmt::format_to(out, ",{}", memory.by_kind[kind].count());
  }
  fmt::format_to(out, ",{},{},{},", memory.total().count(), memory.after.count(),
                 constants.count());
  if (curve.predicted[step]) fmt::format_to(out, "{}", curve.predicted[step]->count());
  *text += '\n';
}

}  // namespace

MemoryCurve TraceCurve(const TrainingStep& step, const Plan& plan, const StepPredictor& predictor) {
  MemoryCurve curve = CurveOf(step, plan, predictor.name);
  const bool has_predictor = plan.request.algorithm.starts_with(predictor.algorithms);
  if (step.is_joint()) {
    if (has_predictor) curve.no_prediction = predictor.why_not_joint;
    return curve;
  }
  if (!has_predictor) return curve;
  Result<std::vector<std::optional<Bytes>>> predicted = predictor.predict(step.forward(), plan);
  if (predicted.ok()) {
    curve.predicted = *std::move(predicted);
  } else {
    curve.no_prediction = predicted.error().message;
  }
  return curve;
}

std::string WriteCurveCsv(std::span<const MemoryCurve> curves) {
  const bool has_two = curves.size() == 2;
  std::string text = has_two ? "plan,step,phase,node" : "step,phase,node";
  size_t kinds = 0;
  for (const MemoryCurve& curve : curves) {
    kinds = std::max(kinds, ShownKinds(curve.plan->schedule));
  }
  for (size_t kind = 0; kind < kinds; ++kind) {
    text += fmt::format(",{}_bytes", NameOf(static_cast<MemoryKind>(kind)));
  }
  text += ",memory_bytes,after_bytes,constant_bytes,predicted_bytes\n";
  for (const MemoryCurve& curve : curves) {
    const Bytes constants = TotalConstants(curve.plan->figures);
    for (size_t step = 0; step < curve.steps.size(); ++step) {
      if (has_two) text += &curve == curves.data() ? "old," : "new,";
      AppendRow(curve, step, kinds, constants, &text);
    }
  }
  return text;
}

// Coordinates are integers, in tenths of a pixel, so that the same plan gives the same bytes on
// every platform.

namespace {

constexpr int64_t kWidth = 960;
constexpr int64_t kHeight = 530;
constexpr int64_t kLeft = 90;  // The left edge of the plot.
constexpr int64_t kTop = 130;
constexpr int64_t kPlotWidth = 840;
constexpr int64_t kPlotHeight = 340;
constexpr int64_t kBottom = kTop + kPlotHeight;
constexpr int64_t kFirstLine = 26;  // The first line of the text above the plot.
constexpr int64_t kLineHeight = 22;
constexpr size_t kLongestLabel = 80;

// Okabe and Ito's palette, which colour-blind readers can distinguish. Kept and recomputed have the
// same colours as in dot.h.
constexpr std::array<std::string_view, kMemoryKinds> kKindColours = {
    "#56B4E9", "#009E73", "#E69F00", "#CC79A7", "#F0E442", "#D55E00"};
// Also the names of CSS classes.
constexpr std::array<std::string_view, 2> kPlanNames = {"old", "new"};

constexpr std::string_view kLightStyles = R"(.mark { stroke: #222222; fill: none; }
.bold { stroke-width: 1.8; }
.halo { stroke: #ffffff; stroke-width: 4; fill: none; }
.old { stroke: #0072b2; }
.new { stroke: #d55e00; }
.budget { stroke-dasharray: 8 4; }
.loss { stroke-dasharray: 2 3; }
)";
constexpr std::string_view kDarkStyles = R"(.mark { stroke: #dddddd; }
.halo { stroke: #1c1c1c; }
.old { stroke: #56b4e9; }
.new { stroke: #e69f00; }
)";

std::string Tenths(int64_t value) { return fmt::format("{}.{}", value / 10, value % 10); }

// Maps steps and sizes to pixels on both axes.
class Axes {
 public:
  Axes(size_t step_count, Bytes highest)
      : step_count_(std::max<size_t>(step_count, 1)),
        column_count_(std::min(step_count_, static_cast<size_t>(kPlotWidth))) {
    while (highest.count() / 8 >= tick_.count()) tick_ = 2 * tick_;
    unit_ = UnitOf(std::max(highest, tick_));
    tick_count_ = std::max<int64_t>((highest.count() + tick_.count() - 1) / tick_.count(), 1);
  }

  size_t column_count() const { return column_count_; }
  size_t ColumnOf(size_t step) const { return step * column_count_ / step_count_; }
  int64_t ColumnLeft(size_t column) const {
    return 10 * kLeft +
           10 * kPlotWidth * static_cast<int64_t>(column) / static_cast<int64_t>(column_count_);
  }
  int64_t ColumnMiddle(size_t column) const {
    return (ColumnLeft(column) + ColumnLeft(column + 1)) / 2;
  }
  // Sizes are below 2^56 (kMaxTotalBytes), so the product needs more than 64 bits.
  int64_t HeightOf(Bytes bytes) const {
    const auto part = static_cast<__int128>(bytes.count()) * 10 * kPlotHeight;
    return 10 * kBottom - static_cast<int64_t>(part / (tick_count_ * tick_).count());
  }

  void Draw(std::string* svg) const {
    const auto out = std::back_inserter(*svg);
    for (int64_t i = 0; i <= tick_count_; ++i) {
      const std::string y = Tenths(HeightOf(i * tick_));
      fmt::format_to(out, "<path class=\"grid\" d=\"M{} {}h{}\"/>\n", kLeft, y, kPlotWidth);
      fmt::format_to(out, "<text class=\"end\" x=\"{}\" y=\"{}\" dy=\"4\">{}</text>\n", kLeft - 8,
                     y, AmountIn(unit_, i * tick_));
    }
    const size_t stride = StepStride();
    for (size_t step = 0; step <= step_count_; step += stride) {
      const int64_t x = 10 * kLeft + 10 * kPlotWidth * static_cast<int64_t>(step) /
                                         static_cast<int64_t>(step_count_);
      fmt::format_to(out, "<text class=\"middle\" x=\"{}\" y=\"{}\">{}</text>\n", Tenths(x),
                     kBottom + 18, step);
    }
    fmt::format_to(out, "<text class=\"middle\" x=\"{}\" y=\"{}\">step of the schedule</text>\n",
                   kLeft + kPlotWidth / 2, kBottom + 42);
    fmt::format_to(out,
                   "<text class=\"middle\" transform=\"translate(20 {}) rotate(-90)\">memory in "
                   "use, {}</text>\n",
                   kTop + kPlotHeight / 2, unit_.name);
  }

 private:
  // Returns the smallest of 1, 2, 5, 10, 20, ... that needs at most ten labels.
  size_t StepStride() const {
    for (size_t power = 1;; power *= 10) {
      for (const size_t stride : {power, 2 * power, 5 * power}) {
        if (step_count_ / stride <= 10) return stride;
      }
    }
  }

  size_t step_count_;
  size_t column_count_;
  Bytes tick_{1};  // A power of two, so that no label is rounded.
  int64_t tick_count_ = 1;
  ByteUnit unit_;
};

// Returns the step with the most memory for each column up to the end of the curve.
std::vector<size_t> HighestSteps(const MemoryCurve& curve, const Axes& axes) {
  std::vector<size_t> highest;
  for (size_t step = 0; step < curve.steps.size(); ++step) {
    if (axes.ColumnOf(step) == highest.size()) {
      highest.push_back(step);
    } else if (curve.steps[step].total() > curve.steps[highest.back()].total()) {
      highest.back() = step;
    }
  }
  return highest;
}

// A budget far above the peak is not drawn, since it would flatten the curve.
bool FitsPicture(Bytes budget, Bytes highest) { return budget <= 2 * highest; }

Bytes HighestOf(std::span<const MemoryCurve> curves, bool has_predictions) {
  Bytes highest;
  for (const MemoryCurve& curve : curves) {
    highest = std::max(highest, curve.steps[curve.peak_step].total());
    if (!has_predictions) continue;
    for (const auto& predicted : curve.predicted) {
      highest = std::max(highest, predicted.value_or(Bytes(0)));
    }
  }
  const Bytes needed = highest;
  for (const MemoryCurve& curve : curves) {
    const auto budget = curve.plan->request.budget.in_bytes();
    if (budget && FitsPicture(*budget, needed)) highest = std::max(highest, *budget);
  }
  return highest;
}

class CurvePicture {
 public:
  explicit CurvePicture(std::span<const MemoryCurve> curves)
      : curves_(curves),
        has_two_(curves.size() == 2),
        highest_(HighestOf(curves, !has_two_)),
        axes_(LongestOf(curves), highest_) {
    svg_ = SvgPage(kWidth, kHeight, kLightStyles, kDarkStyles);
  }

  std::string Draw() && {
    axes_.Draw(&svg_);
    if (has_two_) {
      for (size_t i = 0; i < curves_.size(); ++i) DrawLine(curves_[i], i);
    } else {
      DrawAreas(curves_[0]);
      DrawPrediction(curves_[0]);
    }
    for (size_t i = 0; i < curves_.size(); ++i) DrawMarks(curves_[i], i);
    WriteTitle();
    if (has_two_) {
      for (size_t i = 0; i < curves_.size(); ++i) WritePlan(i);
    } else {
      WriteKinds();
      WriteLines();
      WritePeak(0);
      if (!curves_[0].no_prediction.empty()) {
        Text(
            kLeft, NewLine(), "",
            fmt::format("no prediction by {}: {}", curves_[0].predictor, curves_[0].no_prediction));
      }
    }
    return std::move(svg_) + "</svg>\n";
  }

 private:
  static size_t LongestOf(std::span<const MemoryCurve> curves) {
    size_t longest = 0;
    for (const MemoryCurve& curve : curves) longest = std::max(longest, curve.steps.size());
    return longest;
  }

  template <typename... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(svg_), format, std::forward<Args>(args)...);
  }

  void Text(int64_t x, int64_t y, std::string_view style, const std::string& printable) {
    const std::string attribute = style.empty() ? "" : fmt::format(" class=\"{}\"", style);
    Add("<text{} x=\"{}\" y=\"{}\">{}</text>\n", attribute, x, y, XmlText(printable));
  }

  int64_t NewLine() { return kFirstLine + kLineHeight * ++lines_; }

  // Returns the SVG path of a step function over the columns, starting at the left edge.
  template <typename BytesOf>
  std::string Outline(const std::vector<size_t>& steps, BytesOf bytes_of) const {
    std::string path;
    for (size_t c = 0; c < steps.size(); ++c) {
      const int64_t y = axes_.HeightOf(bytes_of(steps[c]));
      const bool is_first = c == 0;
      const bool is_last = c + 1 == steps.size();
      if (is_first || y != axes_.HeightOf(bytes_of(steps[c - 1]))) {
        path += is_first ? fmt::format("M{} {}", kLeft, Tenths(y)) : fmt::format("V{}", Tenths(y));
      }
      if (is_last || y != axes_.HeightOf(bytes_of(steps[c + 1]))) {
        path += fmt::format("H{}", Tenths(axes_.ColumnLeft(c + 1)));
      }
    }
    return path;
  }

  // Draws the sum of all kinds first, since the later areas cover it.
  void DrawAreas(const MemoryCurve& curve) {
    const std::vector<size_t> steps = HighestSteps(curve, axes_);
    for (size_t kind = kMemoryKinds; kind-- > 0;) {
      if (!HasKind(curve, static_cast<MemoryKind>(kind))) continue;
      const std::string path = Outline(steps, [&](size_t step) {
        Bytes sum;
        for (size_t below = 0; below <= kind; ++below) sum += curve.steps[step].by_kind[below];
        return sum;
      });
      Add("<path fill=\"{}\" d=\"{}V{}H{}Z\"/>\n", kKindColours[kind], path, kBottom, kLeft);
    }
  }

  void DrawLine(const MemoryCurve& curve, size_t number) {
    const std::string path =
        Outline(HighestSteps(curve, axes_), [&](size_t step) { return curve.steps[step].total(); });
    Add("<path class=\"{} bold\" d=\"{}\"/>\n", LineClass(number), path);
  }

  // Returns the CSS class of a line that belongs to this plan.
  std::string LineClass(size_t number) const {
    return has_two_ ? fmt::format("mark {}", kPlanNames[number]) : "mark";
  }

  // Draws a line through the highest prediction in each column.
  void DrawPrediction(const MemoryCurve& curve) {
    std::vector<std::optional<Bytes>> highest(axes_.column_count());
    for (size_t step = 0; step < curve.predicted.size(); ++step) {
      const std::optional<Bytes>& predicted = curve.predicted[step];
      std::optional<Bytes>& column = highest[axes_.ColumnOf(step)];
      if (predicted && (!column || *predicted > *column)) column = predicted;
    }
    std::string points;
    for (size_t c = 0; c < highest.size(); ++c) {
      if (!highest[c]) continue;
      points += fmt::format("{}{},{}", points.empty() ? "" : " ", Tenths(axes_.ColumnMiddle(c)),
                            Tenths(axes_.HeightOf(*highest[c])));
    }
    if (points.empty()) return;
    Add("<polyline class=\"halo\" points=\"{}\"/>\n", points);
    Add("<polyline class=\"mark bold\" points=\"{}\"/>\n", points);
  }

  // Marks the loss, the peak and the budget.
  void DrawMarks(const MemoryCurve& curve, size_t number) {
    const std::string mark = LineClass(number);
    if (curve.loss_step) {
      Add("<path class=\"{} loss\" d=\"M{} {}V{}\"/>\n", mark,
          Tenths(axes_.ColumnMiddle(axes_.ColumnOf(*curve.loss_step))), kTop, kBottom);
    }
    const auto budget = curve.plan->request.budget.in_bytes();
    if (budget && *budget <= highest_) {
      Add("<path class=\"{} budget\" d=\"M{} {}h{}\"/>\n", mark, kLeft,
          Tenths(axes_.HeightOf(*budget)), kPlotWidth);
    }
    Add("<circle class=\"{}\" cx=\"{}\" cy=\"{}\" r=\"5\"/>\n", mark,
        Tenths(axes_.ColumnMiddle(axes_.ColumnOf(curve.peak_step))),
        Tenths(axes_.HeightOf(curve.steps[curve.peak_step].total())));
  }

  static bool HasKind(const MemoryCurve& curve, MemoryKind kind) {
    return std::any_of(curve.steps.begin(), curve.steps.end(),
                       [kind](const StepMemory& memory) { return memory.of(kind) > Bytes(0); });
  }

  static std::string DescribePlan(const Plan& plan) {
    return fmt::format("{}, {}", Printable(plan.model.name, kLongestLabel),
                       Printable(plan.request.algorithm, kLongestLabel));
  }

  void WriteTitle() {
    const std::string subject = has_two_ ? "two plans" : DescribePlan(*curves_[0].plan);
    Text(kLeft, kFirstLine, "head", "memory of a training step: " + subject);
  }

  // Draws a symbol with its label and returns the x of the next item, assuming letters of at most
  // seven pixels.
  int64_t LegendItem(int64_t x, int64_t y, const std::string& sample, const std::string& word) {
    Add("<g transform=\"translate({} {})\">{}</g>\n", x, y - 5, sample);
    Text(x + 24, y, "", word);
    return x + 24 + 7 * static_cast<int64_t>(CharacterCount(word)) + 20;
  }

  void WriteBudgetAndLoss(size_t number, int64_t x, int64_t y) {
    const std::string mark = LineClass(number);
    if (curves_[number].loss_step) {
      x = LegendItem(x, y, fmt::format(R"(<path class="{} loss" d="M9 -7V7"/>)", mark), "loss");
    }
    const auto budget = curves_[number].plan->request.budget.in_bytes();
    if (!budget) return;
    const bool is_above = *budget > highest_;
    LegendItem(x, y, fmt::format(R"(<path class="{} budget" d="M0 0h18"/>)", mark),
               fmt::format("budget {}{}", HumanBytes(*budget), is_above ? ", above" : ""));
  }

  void WriteKinds() {
    const MemoryCurve& curve = curves_[0];
    const int64_t y = NewLine();
    int64_t x = kLeft;
    for (size_t i = 0; i < kMemoryKinds; ++i) {
      const auto kind = static_cast<MemoryKind>(i);
      if (!HasKind(curve, kind)) continue;
      const std::string sample =
          fmt::format(R"(<rect y="-6" width="18" height="12" fill="{}"/>)", kKindColours[i]);
      x = LegendItem(x, y, sample, std::string(NameOf(kind)));
    }
  }

  void WriteLines() {
    const int64_t y = NewLine();
    int64_t x = kLeft;
    if (curves_[0].has_prediction()) {
      x = LegendItem(x, y, R"(<path class="mark bold" d="M0 0h18"/>)",
                     std::string(curves_[0].predictor));
    }
    WriteBudgetAndLoss(0, x, y);
  }

  void WritePeak(size_t number) {
    LegendItem(kLeft, NewLine(),
               fmt::format(R"(<circle class="{}" cx="9" r="5"/>)", LineClass(number)),
               PeakText(curves_[number]));
  }

  static std::string PeakText(const MemoryCurve& curve) {
    std::string text =
        fmt::format("peak {} at step {}, {}", HumanBytes(curve.steps[curve.peak_step].total()),
                    curve.peak_step, curve.phases[curve.peak_step]);
    const std::string node = curve.nodes[curve.peak_step];
    if (!node.empty()) text += " of " + Printable(node, kLongestLabel);
    return text;
  }

  void WritePlan(size_t number) {
    const MemoryCurve& curve = curves_[number];
    const int64_t y = NewLine();
    const std::string sample =
        fmt::format(R"(<path class="{} bold" d="M0 0h18"/>)", LineClass(number));
    const int64_t x = LegendItem(
        kLeft, y, sample, fmt::format("{}: {}", kPlanNames[number], DescribePlan(*curve.plan)));
    WriteBudgetAndLoss(number, x, y);
    WritePeak(number);
  }

  std::span<const MemoryCurve> curves_;
  bool has_two_;
  Bytes highest_;
  Axes axes_;
  int64_t lines_ = 0;
  std::string svg_;
};

}  // namespace

std::string WriteCurveSvg(std::span<const MemoryCurve> curves) {
  return CurvePicture(curves).Draw();
}

}  // namespace ckplan
