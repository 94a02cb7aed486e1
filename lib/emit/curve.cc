#include "lib/emit/curve.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "lib/algorithms/hong/step_prediction.h"
#include "lib/base/printable.h"
#include "lib/base/quoted_text.h"
#include "lib/plan/node_name.h"
#include "lib/schedule/timeline.h"

namespace ckplan {
namespace {

void AppendRow(const MemoryCurve& curve, size_t step, Bytes constants, std::string* text) {
  const auto out = std::back_inserter(*text);
  fmt::format_to(out, "{},{},{}", step, curve.PhaseOf(step),
                 CsvCell(Printable(curve.NodeOf(step))));
  const StepMemory& memory = curve.steps[step];
  for (const Bytes bytes : memory.by_kind) fmt::format_to(out, ",{}", bytes.count());
  fmt::format_to(out, ",{},{},{},", memory.total().count(), memory.after.count(),
                 constants.count());
  if (curve.predicted[step]) fmt::format_to(out, "{}", curve.predicted[step]->count());
  *text += '\n';
}

}  // namespace

std::string_view MemoryCurve::PhaseOf(size_t step) const {
  switch (plan->schedule.steps[step].kind) {
    case StepKind::kForward:
      return step < loss_step ? "forward" : "recompute";
    case StepKind::kLoss:
      return "loss";
    case StepKind::kBackward:
      return "backward";
    case StepKind::kFree:
      return "free";
    case StepKind::kRun:
      return "run";
  }
  return "";
}

std::string MemoryCurve::NodeOf(size_t step) const {
  const Step& what = plan->schedule.steps[step];
  if (what.kind == StepKind::kLoss) return "";
  const bool is_free = what.kind == StepKind::kFree;
  return ShownName(*graph, is_free ? graph->tensor(what.tensor()).producer : what.node());
}

MemoryCurve TraceCurve(const TensorGraph& graph, const Plan& plan) {
  const Timeline timeline = BuildTimeline(graph, plan.schedule);
  MemoryCurve curve{&graph, &plan, TraceMemory(timeline), timeline.loss_step, timeline.peak_step,
                    {},     {}};
  Result<std::vector<std::optional<Bytes>>> predicted = PredictSteps(graph, plan);
  if (predicted.ok()) {
    curve.predicted = *std::move(predicted);
  } else {
    curve.predicted.resize(curve.steps.size());
    curve.no_prediction = predicted.error().message;
  }
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
