// Reads the graph to plan for from a model or from a graph.json, with the settings of a request.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/files/model/model.h"
#include "lib/planning/plan/accounting.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/plan/request.h"
#include "lib/problem/graph/absent_values.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/graph/module_calls.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

struct Source {
  TensorGraph graph;  // Empty for the file of a joint graph.
  ModelIdentity identity;
  // The request, completed by what is known after reading: the sizes of all dimensions, and the
  // name and unit of the costs.
  PlanRequest request;
  // The members below are set for a model, not for a graph file; see ModelGraph.
  bool is_model = false;
  std::vector<ModelNodeRole> roles;
  std::vector<std::string> warnings;
  ModuleCalls modules = {};
  std::vector<AbsentValue> absent_values = {};
  std::optional<int64_t> constant_batch = std::nullopt;  // See Model::constant_batch.
  std::vector<RestoredOperation> restored = {};          // See Model::restored.
  // The part of the parameters that is state of another kind, such as running statistics. Graph
  // files do not tell it apart.
  Bytes buffers = Bytes(0);
  // Set for a joint graph file, for a model whose gradients arrive (ParameterGradients), and for
  // any graph whose values may move to the host. Plans are then plans of this graph.
  std::optional<JointGraph> joint = std::nullopt;
  // What each operation of `joint` is in a schedule of `graph`; empty for a joint graph file.
  std::vector<Step> step_of = {};

  // Returns the training step that plans are made for. It refers to the source.
  TrainingStep step() const;
};

// Returns what training needs on a device, with the plan or with keep-all. The optimizer and the
// memory are those of the source's request.
Accounting AccountForPlan(const Source& source, const Plan& plan);
Accounting AccountForKeepAll(const Source& source);

// kUsage: the request does not apply to this kind of file. kCheckFailed: `planned` is given, and
// the file is another model; this is checked before the request is applied. kTimeout: stopped
// (lib/base/stop.h). Other errors are those of reading the file.
Result<Source> LoadSource(const std::string& path, const PlanRequest& request,
                          const ModelIdentity* planned = nullptr);

// Returns the error of a limit that the state of the optimizer counts towards, if the source is a
// graph file that does not say what is trained. The state is then counted as 0 bytes. Where nobody
// has named the optimizer, that is a warning, the error's message with the other words.
std::optional<Error> UnknownState(const Source& source, Optimizer optimizer);
inline constexpr std::string_view kCountsAsNothing = " and counts as 0 B";

// A model and the graph that it is lowered to, for programs that also run the model. Sizes of
// buffers are not rounded up: see AlignSizes.
struct ModelSource {
  Model model;
  ModelGraph lowered;
  PlanRequest request;  // Completed; see Source.
};
Result<ModelSource> LoadModelSource(const std::string& path, const PlanRequest& request,
                                    const ModelIdentity* planned = nullptr);

// Checks the text of a cost model without reading a source, so that errors are found before a model
// is loaded.
Result<Done> CheckCostModel(const std::string& text);

// Returns the request with which the source is read again exactly as it was read for the plan.
// kUsage: a file is missing that the plan was made with, or one is given without which it was made.
Result<PlanRequest> RequestToReadAgain(const PlanRequest& plan, const FilesOfPlan& files);

// Returns the files of the source: `path` itself and, for a model, the files that hold its weights.
// Those are never read for a plan, but must not be overwritten either.
std::vector<std::string> FilesOf(const std::string& path);

// Returns whether the file is a graph: its name ends in .json, it begins like JSON, or it is a
// stream of any name. Any other file is a model.
bool IsGraphFile(const std::string& path);

// Reads a file of JSON. kInvalidInput: it is a stream, and holds no JSON; `what` is what it should
// hold ("graph.json").
Result<std::string> ReadJsonFile(const std::string& path, std::string_view what);

}  // namespace ckplan
