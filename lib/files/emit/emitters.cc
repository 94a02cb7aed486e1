#include "lib/files/emit/emitters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/base/text.h"
#include "lib/files/emit/dot.h"
#include "lib/files/emit/json_graph.h"
#include "lib/files/emit/json_joint_graph.h"
#include "lib/files/emit/json_plan.h"
#include "lib/files/emit/json_request.h"
#include "lib/files/emit/report.h"
#include "lib/files/emit/viewers.h"
#include "lib/planning/explain/traced_plan.h"
#include "lib/planning/plan/plan.h"
#include "lib/problem/graph/layer_fold.h"
#include "lib/problem/schedule/gradient_graph.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {
namespace {

Result<Emitted> EmitJson(const EmitSource& source, const std::string&) {
  const TrainingStep& step = source.step;
  if (source.plan != nullptr) return Emitted{WritePlanJson(*source.plan, step)};
  return Emitted{step.is_joint() ? WriteJointGraphJson(step.joint())
                                 : WriteGraphJson(step.forward())};
}

Result<Emitted> EmitEveryNode(const EmitSource& source, const std::string&) {
  return Emitted{WriteDot(source.step, source.plan)};
}

Result<Emitted> EmitDot(const EmitSource& source, const std::string& path) {
  const TrainingStep& step = source.step;
  if (step.node_count() <= kMaxDotNodes) return EmitEveryNode(source, path);
  Emitted emitted{WriteFoldedDot(step, source.plan)};
  emitted.notes.push_back(
      fmt::format("{}: drawn by module because the graph has {} nodes; use dot-nodes to draw them",
                  path, step.node_count()));
  return emitted;
}

// Draws the graph that the plan's algorithm used: folded by layers or not.
Result<Emitted> EmitDivisionTree(const EmitSource& source, const std::string&) {
  const bool is_folded =
      source.plan != nullptr && source.plan->request.granularity == Granularity::kLayer;
  const auto write = source.papers->division_tree;
  CKPLAN_ASSIGN_OR_RETURN(std::string text, is_folded
                                                ? write(FoldLayers(source.step.forward()).graph)
                                                : write(source.step.forward()));
  return Emitted{std::move(text)};
}

constexpr std::string_view kDotEnding = ".dot";
constexpr std::array kGradientGraphEndings = {kDotEnding, std::string_view(".json")};

Result<Emitted> EmitGradientGraph(const EmitSource& source, const std::string& path) {
  CKPLAN_ASSIGN_OR_RETURN(const GradientGraph made,
                          BuildGradientGraph(source.step, source.plan->schedule));
  return Emitted{path.ends_with(kDotEnding) ? WriteGradientGraphDot(made)
                                            : WriteJointGraphJson(made.graph)};
}

Result<Emitted> EmitOnnx(const EmitSource& source, const std::string& path) {
  CKPLAN_ASSIGN_OR_RETURN(const Emitted json, EmitJson(source, path));
  return source.annotate(json.text, path);
}

constexpr std::string_view kCsvEnding = ".csv";
constexpr std::array kCurveEndings = {kCsvEnding, std::string_view(".svg")};

Result<Emitted> EmitCurve(const EmitSource& source, const std::string& path) {
  std::vector<MemoryCurve> curves;
  const auto add = [&](const EmitSource& one) {
    curves.push_back(TraceCurve(one.step, *one.plan, one.papers->predictor));
  };
  if (source.older != nullptr) add(*source.older);
  add(source);
  Emitted emitted{path.ends_with(kCsvEnding) ? WriteCurveCsv(curves) : WriteCurveSvg(curves)};
  for (const MemoryCurve& curve : curves) {
    if (curve.no_prediction.empty()) continue;
    emitted.notes.push_back(fmt::format("{}: no prediction by {} for {}: {}", path, curve.predictor,
                                        curve.plan->request.algorithm, curve.no_prediction));
  }
  return emitted;
}

Result<Emitted> EmitAccounting(const EmitSource& source, const std::string&) {
  return Emitted{AccountingJson(source.account(), source.memory)};
}

Emitted EmitTraced(const EmitSource& source, std::string (*write)(const TracedPlan& traced)) {
  return Emitted{write(TracePlan(source.step, *source.plan))};
}

Result<Emitted> EmitPerfetto(const EmitSource& source, const std::string&) {
  return EmitTraced(source, WritePerfetto);
}

Result<Emitted> EmitMemoryViz(const EmitSource& source, const std::string&) {
  return EmitTraced(source, WriteMemoryViz);
}

Result<Emitted> EmitPeakStacks(const EmitSource& source, const std::string&) {
  return EmitTraced(source, WritePeakStacks);
}

Result<Emitted> EmitReport(const EmitSource& source, const std::string&) {
  std::vector<ReportPlan> plans;
  const TracedPlan traced = TracePlan(source.step, *source.plan);
  if (source.older == nullptr) {
    plans.push_back({source.plan->request.algorithm, &traced});
    return Emitted{WriteReport(plans, {})};
  }
  const TracedPlan older = TracePlan(source.older->step, *source.older->plan);
  plans.push_back({"old", &older});
  plans.push_back({"new", &traced});
  return Emitted{WriteReport(plans, {})};
}

Result<Emitted> EmitModelExplorer(const EmitSource& source, const std::string&) {
  return Emitted{WriteModelExplorer(source.step.forward(),
                                    source.in_model_form ? *source.in_model_form : *source.plan)};
}

constexpr std::array kEmitters = {
    Emitter{"json", "the plan or the graph, as JSON", Emitter::Needs::kGraph, EmitJson,
            /*takes_joint=*/true},
    Emitter{"dot", "a Graphviz picture; a large graph is drawn by modules", Emitter::Needs::kGraph,
            EmitDot,
            /*takes_joint=*/true},
    Emitter{"dot-nodes", "a Graphviz picture of every node", Emitter::Needs::kGraph, EmitEveryNode,
            /*takes_joint=*/true},
    Emitter{"division-tree", "the division tree of the graph, for Graphviz", Emitter::Needs::kGraph,
            EmitDivisionTree},
    Emitter{"gradient-graph",
            "the training step with a node for each run, as .dot or a joint graph in .json",
            Emitter::Needs::kPlan, EmitGradientGraph, /*takes_joint=*/true, kGradientGraphEndings},
    Emitter{"curve", "memory at every step, as .csv or .svg", Emitter::Needs::kPlan, EmitCurve,
            /*takes_joint=*/true, kCurveEndings, /*takes_two=*/true},
    Emitter{"accounting", "an itemized list of the device memory that training needs, as JSON",
            Emitter::Needs::kPlan, EmitAccounting, /*takes_joint=*/true},
    Emitter{"peak-stacks", "memory at the peak, as folded stacks by module", Emitter::Needs::kPlan,
            EmitPeakStacks, /*takes_joint=*/true},
    Emitter{"perfetto",
            "the schedule and its memory use, for ui.perfetto.dev",
            Emitter::Needs::kPlan,
            EmitPerfetto,
            /*takes_joint=*/true,
            {},
            /*takes_two=*/false,
            /*is_binary=*/true},
    Emitter{"memory-viz",
            "the allocations, as a snapshot for pytorch.org/memory_viz",
            Emitter::Needs::kPlan,
            EmitMemoryViz,
            /*takes_joint=*/true,
            {},
            /*takes_two=*/false,
            /*is_binary=*/true},
    Emitter{"model-explorer", "each node's action, for Model Explorer", Emitter::Needs::kPlan,
            EmitModelExplorer},
    Emitter{"html",
            "an HTML page; `ckplan report` adds the curve of memory against time",
            Emitter::Needs::kPlan,
            EmitReport,
            /*takes_joint=*/true,
            {},
            /*takes_two=*/true},
    Emitter{"onnx", "the model, annotated with the plan", Emitter::Needs::kModel, EmitOnnx},
};

}  // namespace

bool Emitter::Takes(EmitSubject subject) const {
  switch (subject) {
    case EmitSubject::kGraph:
      return needs == Needs::kGraph;
    case EmitSubject::kPlan:
      return true;
    case EmitSubject::kTwoPlans:
      return takes_two;
  }
  return false;
}

Result<Done> Emitter::CheckFor(const EmitSource& source) const {
  const auto is_joint_alone = [](const EmitSource* one) {
    return one != nullptr && !one->step.has_forward();
  };
  if (takes_joint || !(is_joint_alone(&source) || is_joint_alone(source.older))) return Done{};
  return MakeError(ErrorCode::kUsage,
                   fmt::format("--emit {} needs a forward graph; this is a joint graph", name));
}

Result<Done> Emitter::CheckEnding(std::string_view path) const {
  const bool is_taken = std::any_of(endings.begin(), endings.end(),
                                    [path](std::string_view e) { return path.ends_with(e); });
  if (endings.empty() || is_taken) return Done{};
  return MakeError(ErrorCode::kUsage, fmt::format("--emit {}: \"{}\" does not end in {}", name,
                                                  path, fmt::join(endings, " or ")));
}

std::span<const Emitter> AllEmitters() { return kEmitters; }

std::string EmitterNames(EmitSubject subject, std::string_view last_separator) {
  std::vector<std::string_view> names;
  for (const Emitter& emitter : kEmitters) {
    if (emitter.Takes(subject)) names.push_back(emitter.name);
  }
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? last_separator : ", ";
    text += names[i];
  }
  return text;
}

Result<const Emitter*> FindEmitter(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Emitter& emitter : kEmitters) {
    if (emitter.name == name) return &emitter;
    names.push_back(emitter.name);
  }
  return MakeError(ErrorCode::kUsage,
                   fmt::format("\"{}\" is not one of {}{}", name.substr(0, 80),
                               EmitterNames(EmitSubject::kPlan, ", "), DidYouMean(name, names)));
}

}  // namespace ckplan
