#include "lib/emit/emitters.h"

#include <fmt/format.h>

#include <array>

#include "lib/base/nearest_name.h"
#include "lib/emit/division_tree_dot.h"
#include "lib/emit/dot.h"
#include "lib/emit/json_graph.h"
#include "lib/emit/json_plan.h"
#include "lib/graph/layer_fold.h"

namespace ckplan {
namespace {

Result<Emitted> EmitJson(const EmitSource& source, const std::string&) {
  return Emitted{source.plan == nullptr ? WriteGraphJson(source.graph)
                                        : WritePlanJson(*source.plan, source.graph),
                 nullptr,
                 {}};
}

Result<Emitted> EmitDot(const EmitSource& source, const std::string&) {
  return Emitted{WriteDot(source.graph, source.plan), nullptr, {}};
}

// Draws the graph that the plan's algorithm worked on.
Result<Emitted> EmitDivisionTree(const EmitSource& source, const std::string&) {
  const bool is_folded =
      source.plan != nullptr && source.plan->request.granularity == Granularity::kLayer;
  CKPLAN_ASSIGN_OR_RETURN(std::string text,
                          is_folded ? WriteDivisionTreeDot(FoldLayers(source.graph).graph)
                                    : WriteDivisionTreeDot(source.graph));
  return Emitted{std::move(text), nullptr, {}};
}

Result<Emitted> EmitOnnx(const EmitSource& source, const std::string& path) {
  return source.annotate(WritePlanJson(*source.plan, source.graph), path);
}

constexpr std::array kEmitters = {
    Emitter{"json", "the plan or the graph, as JSON", Emitter::Needs::kGraph, EmitJson},
    Emitter{"dot", "a picture of it, for Graphviz", Emitter::Needs::kGraph, EmitDot},
    Emitter{"division-tree", "the division tree of the graph, for Graphviz", Emitter::Needs::kGraph,
            EmitDivisionTree},
    Emitter{"onnx", "the model with the plan in it", Emitter::Needs::kModel, EmitOnnx},
};

}  // namespace

std::span<const Emitter> AllEmitters() { return kEmitters; }

std::string EmitterNames(bool has_plan, std::string_view last_separator) {
  std::vector<std::string_view> names;
  for (const Emitter& emitter : kEmitters) {
    if (has_plan || emitter.needs == Emitter::Needs::kGraph) names.push_back(emitter.name);
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
                   fmt::format("\"{}\" is none of {}{}", name.substr(0, 80),
                               EmitterNames(/*has_plan=*/true, ", "), DidYouMean(name, names)));
}

}  // namespace ckplan
