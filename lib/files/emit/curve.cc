#include "lib/files/emit/curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "lib/base/text.h"
#include "lib/planning/explain/traced_plan.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {
namespace {

constexpr std::string_view kForward = "forward";
constexpr std::string_view kBackward = "backward";
constexpr std::string_view kRecompute = "recompute";

std::string_view PhaseOf(const TracedPlan& traced, size_t k) {
  const Step& step = traced.steps()[k];
  switch (step.kind) {
    case StepKind::kForward:
      return k < traced.timeline.loss_step ? kForward : kRecompute;
    case StepKind::kLoss:
      return "loss";
    case StepKind::kBackward:
      return kBackward;
    case StepKind::kFree:
      return "free";
    case StepKind::kRun:
      if (traced.has_run[k]) return kRecompute;
      return traced.graph.IsBackward(step) ? kBackward : kForward;
    case StepKind::kOut:
      return "out";
    case StepKind::kDrop:
      return "drop";
    case StepKind::kIn:
      return "in";
  }
  return "";
}

// Returns an empty text for the loss.
std::string NodeOf(const TrainingStep& graph, const Step& step) {
  if (step.kind == StepKind::kLoss) return "";
  const bool is_of_tensor = step.kind == StepKind::kFree || step.is_transfer();
  return graph.NameOf(is_of_tensor ? graph.MakerOf(step.tensor()) : step.node());
}

// The curve without a prediction.
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
  const bool is_of_paper = plan.request.algorithm.starts_with(predictor.algorithms);
  if (step.is_joint()) {
    if (is_of_paper) curve.no_prediction = predictor.why_not_joint;
    return curve;
  }
  if (!is_of_paper) return curve;
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

}  // namespace ckplan
