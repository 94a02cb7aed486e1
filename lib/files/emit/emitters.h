// The table of output formats for graphs and plans. It drives --emit, its help and its errors.
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
  std::string text;                   // The caller writes it, unless `file` is set.
  std::unique_ptr<PendingFile> file;  // The caller finishes and commits it.
  std::vector<std::string> warnings;
  std::vector<std::string> notes;  // Hints about the file's contents.
};

// Writes a copy of the plan's model, with `plan_json` embedded, to a file.
using Annotator =
    std::function<Result<Emitted>(const std::string& plan_json, const std::string& path)>;

// Pictures from papers. The caller passes the functions that draw them, since this folder must not
// depend on the algorithms' folders.
struct PaperPictures {
  Result<std::string> (*division_tree)(const TensorGraph& graph) = nullptr;  // For Graphviz.
  StepPredictor predictor;
};

struct EmitSource {
  TrainingStep step;
  const Plan* plan = nullptr;  // Null to write only the graph.
  Annotator annotate = {};     // Empty unless the graph comes from a model.
  // The older plan of a comparison, for emitters that take two plans. Its graph may differ.
  const EmitSource* older = nullptr;
  const PaperPictures* papers = nullptr;  // Required by the formats division-tree and curve.
  // Computes the device memory that training needs. Set if there is a plan.
  std::function<Accounting()> account = {};
  Budget memory = {};  // The device memory to compare with, if the user gave one.
  // If the joint step was derived from a forward graph: the plan in terms of that graph.
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
  std::string_view summary;  // For help, such as "the plan or the graph, as JSON".
  Needs needs = Needs::kGraph;
  Result<Emitted> (*emit)(const EmitSource& source, const std::string& path) = nullptr;
  bool takes_joint = false;  // Also takes joint graphs and plans for them.
  // The accepted file name endings, which select a variant; empty to accept any name.
  std::span<const std::string_view> endings = {};
  bool takes_two = false;  // Can write two plans side by side.
  bool is_binary = false;  // Needs a file, since it does not write text.

  bool Takes(EmitSubject subject) const;
  // kUsage: the source is a joint graph, but this format is for forward graphs only.
  Result<Done> CheckFor(const EmitSource& source) const;
  // kUsage: the path has none of `endings`.
  Result<Done> CheckEnding(std::string_view path) const;
};

std::span<const Emitter> AllEmitters();
// kUsage: no emitter has that name; the message suggests a similar name.
Result<const Emitter*> FindEmitter(std::string_view name);
// Lists the names of the emitters that take the subject: "json, dot or onnx".
std::string EmitterNames(EmitSubject subject, std::string_view last_separator);

}  // namespace ckplan
