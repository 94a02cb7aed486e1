// The table of file formats for graphs and plans. --emit, its help and its errors are made from it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/file.h"
#include "lib/base/result.h"
#include "lib/files/emit/curve.h"
#include "lib/planning/plan/accounting.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/graph/origins.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

struct Plan;

struct Emitted {
  std::string text;                   // For the caller to write, unless `file` is set.
  std::unique_ptr<PendingFile> file;  // For the caller to finish and commit.
  std::vector<std::string> warnings;
  std::vector<std::string> notes;  // Hints about contents that a reader may miss in the file.
};

// Writes a copy of the plan's model that includes `plan_json` to a file.
using Annotator =
    std::function<Result<Emitted>(const std::string& plan_json, const std::string& path)>;

// The pictures that papers have of graphs and plans. Their folders, which this one does not see,
// make them, so the caller hands them in.
struct PaperPictures {
  Result<std::string> (*division_tree)(const TensorGraph& graph) = nullptr;  // For Graphviz.
  StepPredictor predictor;
};

struct EmitSource {
  TrainingStep step;
  const Plan* plan = nullptr;  // If null, the graph alone is written.
  Annotator annotate = {};     // Empty unless the graph comes from a model.
  // The plan to compare with, for emitters that take two; it may have another graph.
  const EmitSource* older = nullptr;
  const PaperPictures* papers = nullptr;  // Never null where a form that papers have is written.
  // What training by the plan needs of a device, in the memory that was asked for, if any. Set
  // where there is a plan.
  std::function<Accounting()> account = {};
  Budget memory = {};
  // The plan of a joint step that was made of a forward graph, as a plan of that graph.
  std::optional<Plan> in_model_form = std::nullopt;
};

// The kinds of content that a command can write.
enum class EmitSubject { kGraph, kPlan, kTwoPlans };

struct Emitter {
  enum class Needs {
    kGraph,  // Writes a graph, or a plan with its graph.
    kPlan,   // Writes a plan with its graph.
    kModel,  // Writes a plan into its model.
  };
  std::string_view name;
  std::string_view summary;  // Says what the file is, such as "as JSON".
  Needs needs = Needs::kGraph;
  Result<Emitted> (*emit)(const EmitSource& source, const std::string& path) = nullptr;
  bool takes_joint = false;  // Also takes joint graphs and plans for them.
  // The file name endings that it accepts, by which it chooses a format; empty if any name will do.
  std::span<const std::string_view> endings = {};
  bool takes_two = false;  // Two plans side by side.
  bool is_binary = false;  // Does not write text, so it needs a file.

  bool Takes(EmitSubject subject) const;
  // kUsage: the source is a joint graph, but this format is for forward graphs only.
  Result<Done> CheckFor(const EmitSource& source) const;
  // kUsage: the path has none of the endings.
  Result<Done> CheckEnding(std::string_view path) const;
};

std::span<const Emitter> AllEmitters();
// Finds an emitter by its name. kUsage, suggesting the nearest name: there is none.
Result<const Emitter*> FindEmitter(std::string_view name);
// Returns the names of the emitters that take the subject: "json, dot or onnx".
std::string EmitterNames(EmitSubject subject, std::string_view last_separator);

}  // namespace ckplan
