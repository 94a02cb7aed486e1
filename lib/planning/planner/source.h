// The input of planning: a graph, facts about its file, and the request.
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
  // The request, completed with what reading determined: the sizes of all dimensions, and the name
  // and unit of the costs.
  PlanRequest request;
  // The members below are set for models, not for graph files; see ModelGraph.
  bool is_model = false;
  std::vector<ModelNodeRole> roles;
  std::vector<std::string> warnings;
  ModuleCalls modules = {};
  std::vector<AbsentValue> absent_values = {};
  std::optional<int64_t> constant_batch = std::nullopt;  // See Model::constant_batch.
  std::vector<RestoredOperation> restored = {};          // See Model::restored.
  // The part of the parameters that isn't trained, such as running statistics. 0 for graph files,
  // which don't distinguish it.
  Bytes buffers = Bytes(0);
  // Set for a joint graph file, for a model with arriving gradients (ParameterGradients), and for
  // any graph with offloading. If set, plans are plans of this graph.
  std::optional<JointGraph> joint = std::nullopt;
  // What each operation of `joint` is in a schedule of `graph`; empty for a joint graph file.
  std::vector<Step> step_of = {};
  bool is_derived = false;  // From readings at other sizes, not from the file: see ReadAtSize.

  // Returns the training step to plan. It refers to the source.
  TrainingStep step() const;
};

// Return what training needs on a device with the plan or with keep-all, for the optimizer and
// memory in the source's request.
Accounting AccountForPlan(const Source& source, const Plan& plan);
Accounting AccountForKeepAll(const Source& source);

// Reads the file of a source again with another request; see LoadSource in lib/files/input.
using ReadSource = std::function<Result<Source>(const PlanRequest&)>;
// Reads a model at one of many sizes of a dimension, or of the fixed batch if `dim` is empty. The
// source may be derived from readings at other sizes. It then probably equals a real reading, which
// callers must check, and lacks the roles of nodes, absent values and restored operations.
using ReadAtSize =
    std::function<Result<Source>(const PlanRequest& request, const std::string& dim)>;

// Returns an error if a limit must include the optimizer's state but the graph file doesn't say
// what is trained. The state then counts as 0 bytes. For a default optimizer, the caller turns this
// into a warning.
std::optional<Error> UnknownState(const Source& source, Optimizer optimizer);
inline constexpr std::string_view kCountsAsNothing = " and counts as 0 B";

}  // namespace ckplan
