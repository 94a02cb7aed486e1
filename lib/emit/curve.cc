#include "lib/emit/curve.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "lib/base/printable.h"
#include "lib/base/quoted_text.h"
#include "lib/joint/run_timeline.h"
#include "lib/plan/assemble_joint.h"
#include "lib/plan/node_name.h"
#include "lib/schedule/timeline.h"

namespace ckplan {
namespace {

constexpr std::string_view kForward = "forward";
constexpr std::string_view kBackward = "backward";
constexpr std::string_view kRecompute = "recompute";

std::string_view PhaseOf(const Schedule& schedule, size_t step, size_t loss_step) {
  switch (schedule.steps[step].kind) {
    case StepKind::kForward:
      return step < loss_step ? kForward : kRecompute;
    case StepKind::kLoss:
      return "loss";
    case StepKind::kBackward:
      return kBackward;
    case StepKind::kFree:
      return "free";
    case StepKind::kRun:
      break;  // Occurs only in joint graphs.
  }
  return "";
}

// Returns an empty text for the loss.
std::string NodeOf(const TensorGraph& graph, const Step& step) {
  if (step.kind == StepKind::kLoss) return "";
  const bool is_free = step.kind == StepKind::kFree;
  return ShownName(graph, is_free ? graph.tensor(step.tensor()).producer : step.node());
}

void AppendRow(const MemoryCurve& curve, size_t step, Bytes constants, std::string* text) {
  const auto out = std::back_inserter(*text);
  fmt::format_to(out, "{},{},{}", step, curve.phases[step], CsvCell(Printable(curve.nodes[step])));
  const StepMemory& memory = curve.steps[step];
  for (const Bytes bytes : memory.by_kind) fmt::format_to(out, ",{}", bytes.count());
  fmt::format_to(out, ",{},{},{},", memory.total().count(), memory.after.count(),
                 constants.count());
  if (curve.predicted[step]) fmt::format_to(out, "{}", curve.predicted[step]->count());
  *text += '\n';
}

}  // namespace

MemoryCurve TraceCurve(const TensorGraph& graph, const Plan& plan, const StepPredictor& predictor) {
  const Timeline timeline = BuildTimeline(graph, plan.schedule);
  MemoryCurve curve;
  curve.plan = &plan;
  curve.predictor = predictor.name;
  curve.steps = TraceMemory(timeline);
  curve.loss_step = timeline.loss_step;
  curve.peak_step = timeline.peak_step;
  for (size_t step = 0; step < plan.schedule.steps.size(); ++step) {
    curve.phases.push_back(PhaseOf(plan.schedule, step, timeline.loss_step));
    curve.nodes.push_back(NodeOf(graph, plan.schedule.steps[step]));
  }
  Result<std::vector<std::optional<Bytes>>> predicted = predictor.predict(graph, plan);
  if (predicted.ok()) {
    curve.predicted = *std::move(predicted);
  } else {
    curve.predicted.resize(curve.steps.size());
    curve.no_prediction = predicted.error().message;
  }
  return curve;
}

MemoryCurve TraceCurve(const JointGraph& graph, const Plan& plan, const StepPredictor& predictor) {
  const std::vector<OpId> runs = RunsOf(plan.schedule);
  const Timeline timeline = BuildRunTimeline(graph, runs);
  MemoryCurve curve;
  curve.plan = &plan;
  curve.predictor = predictor.name;
  curve.peak_step = timeline.peak_step;
  IdVector<OpId, bool> has_run(graph.ops().size());
  std::vector<bool> is_first;  // For each step: its operation has not run before.
  for (const OpId op : runs) {
    is_first.push_back(!has_run[op]);
    const bool is_forward = graph.op(op).phase == Phase::kForward;
    curve.phases.push_back(has_run[op] ? kRecompute : is_forward ? kForward : kBackward);
    curve.nodes.push_back(ShownName(graph, op));
    has_run[op] = true;
  }
  std::vector<MemoryKind> kinds;
  for (const Version& version : timeline.versions) {
    kinds.push_back(is_first[static_cast<size_t>(version.made_at)] ? MemoryKind::kKept
                                                                   : MemoryKind::kRecomputed);
  }
  curve.steps = TraceMemory(timeline, kinds);
  curve.predicted.resize(curve.steps.size());
  curve.no_prediction = predictor.why_not_joint;
  return curve;
}

std::string WriteCurveCsv(std::span<const MemoryCurve> curves) {
  const bool has_two = curves.size() == 2;
  std::string text = has_two ? "plan,step,phase,node" : "step,phase,node";
  for (size_t kind = 0; kind < kMemoryKinds; ++kind) {
    text += fmt::format(",{}_bytes", NameOf(static_cast<MemoryKind>(kind)));
  }
  text += ",memory_bytes,after_bytes,constant_bytes,predicted_bytes\n";
  for (const MemoryCurve& curve : curves) {
    const Bytes constants = TotalConstants(curve.plan->figures);
    for (size_t step = 0; step < curve.steps.size(); ++step) {
      if (has_two) text += &curve == curves.data() ? "old," : "new,";
      AppendRow(curve, step, constants, &text);
    }
  }
  return text;
}

}  // namespace ckplan
