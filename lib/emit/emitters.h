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
#include "lib/graph/module_calls.h"
#include "lib/graph/tensor_graph.h"
#include "lib/joint/joint_graph.h"
#include "lib/plan/plan.h"

namespace ckplan {

struct Emitted {
  std::string text;                   // For the caller to write, unless there is a file.
  std::unique_ptr<PendingFile> file;  // For the caller to finish and put in its place.
  std::vector<std::string> warnings;
  std::vector<std::string> notes;  // What a reader of the file may miss in it.
};

// Writes the model of a plan, with `plan_json` in it, to a file.
using Annotator =
    std::function<Result<Emitted>(const std::string& plan_json, const std::string& path)>;

struct EmitSource {
  const TensorGraph& graph;
  const Plan* plan = nullptr;  // Null: the graph alone is written.
  Annotator annotate = {};     // Empty where the graph does not come from a model.
  // A plan to show the other against, for emitters that take two; it may have another graph.
  const EmitSource* older = nullptr;
  // Not null: the graph is this one, and `graph` is empty.
  const JointGraph* joint = nullptr;
  const ModuleCalls* modules = nullptr;  // Of the graph's nodes; null where nothing is known.
};

// What a command has to write.
enum class EmitSubject { kGraph, kPlan, kTwoPlans };

struct Emitter {
  enum class Needs {
    kGraph,  // Writes a graph, or a plan with its graph.
    kPlan,   // Writes a plan with its graph.
    kModel,  // Writes a plan into the model that it is for.
  };
  std::string_view name;
  std::string_view summary;  // "as JSON": what the file is.
  Needs needs = Needs::kGraph;
  Result<Emitted> (*emit)(const EmitSource& source, const std::string& path) = nullptr;
  bool takes_joint = false;  // Joint graphs and plans for them, too.
  // The endings of file names that it takes, by which it chooses a form; none: any name.
  std::span<const std::string_view> endings = {};
  bool takes_two = false;  // Two plans side by side.
  bool is_binary = false;  // Writes no text, so it needs a file.

  bool Takes(EmitSubject subject) const;
  // kUsage: the source is a joint graph, and this form is of forward graphs alone.
  Result<Done> CheckFor(const EmitSource& source) const;
  // kUsage: the path has none of the endings.
  Result<Done> CheckEnding(std::string_view path) const;
};

std::span<const Emitter> AllEmitters();
// kUsage with the nearest name if there is none of that name.
Result<const Emitter*> FindEmitter(std::string_view name);
// "json, dot or onnx": the names of those that take the subject.
std::string EmitterNames(EmitSubject subject, std::string_view last_separator);

}  // namespace ckplan
