// The forms in which graphs and plans are written to files: the one list from which --emit, its
// help and its errors come.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/write_file.h"
#include "lib/graph/tensor_graph.h"
#include "lib/plan/plan.h"

namespace ckplan {

struct Emitted {
  std::string text;                   // For the caller to write, unless there is a file.
  std::unique_ptr<PendingFile> file;  // For the caller to finish and put in its place.
  std::vector<std::string> warnings;
};

// Writes the model of a plan, with `plan_json` in it, to a file.
using Annotator =
    std::function<Result<Emitted>(const std::string& plan_json, const std::string& path)>;

struct EmitSource {
  const TensorGraph& graph;
  const Plan* plan = nullptr;  // Null: the graph alone is written.
  Annotator annotate = {};     // Empty where the graph does not come from a model.
};

struct Emitter {
  enum class Needs {
    kGraph,  // Writes a graph, or a plan with its graph.
    kModel,  // Writes a plan into the model that it is for.
  };
  std::string_view name;
  std::string_view summary;  // "as JSON": what the file is.
  Needs needs = Needs::kGraph;
  Result<Emitted> (*emit)(const EmitSource& source, const std::string& path) = nullptr;
};

std::span<const Emitter> AllEmitters();
// kUsage with the nearest name if there is none of that name.
Result<const Emitter*> FindEmitter(std::string_view name);
// "json, dot or onnx": the names that a graph alone, or a plan, can be written by.
std::string EmitterNames(bool has_plan, std::string_view last_separator);

}  // namespace ckplan
