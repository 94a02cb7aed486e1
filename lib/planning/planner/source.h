// What plans are made for: a graph, what is known of the file that it was read from, and the
// request.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/planning/plan/accounting.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/plan/request.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/graph/origins.h"
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

// Reads the file of a source once more, with another request: see LoadSource in lib/files/input.
using ReadSource = std::function<Result<Source>(const PlanRequest&)>;

// Returns the error of a limit that the state of the optimizer counts towards, if the source is a
// graph file that does not say what is trained. The state is then counted as 0 bytes. If the
// optimizer is only the default, this is a warning instead.
std::optional<Error> UnknownState(const Source& source, Optimizer optimizer);
inline constexpr std::string_view kCountsAsNothing = " and counts as 0 B";

}  // namespace ckplan
