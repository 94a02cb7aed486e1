// What is planned: a graph, from a model or from a graph.json, with all that the command line says
// about how to read it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/ckplan/options.h"
#include "lib/base/result.h"
#include "lib/cost/cost_model.h"
#include "lib/graph/tensor_graph.h"
#include "lib/model/model.h"
#include "lib/plan/plan.h"

namespace ckplan {

struct SourceRequest {
  std::string path;
  LoadOptions load;
  Autograd autograd = Autograd::kMinimal;
  std::optional<CostModel> cost;  // Absent: flops for a model, its own costs for a graph file.
  int64_t align_bytes = 1;
};

struct Source {
  TensorGraph graph;
  ModelIdentity identity;
  // The part of a plan's request that says how the graph was made.
  std::string cost_model;
  std::string cost_unit;
  Autograd autograd = Autograd::kMinimal;
  ActivationType activation_type = ActivationType::kOfModel;
  int64_t align_bytes = 1;
  // Of a model alone; see ModelGraph.
  bool is_model = false;
  std::vector<ModelNodeRole> roles;
  std::vector<std::string> warnings;
};

// kUsage for values that cannot be read.
Result<SourceRequest> SourceRequestOf(const Options& options, const std::string& path);

// The way in which the source of a plan was read, for reading it again. `cost` is needed where the
// plan's costs came from a file, whose path no plan holds.
Result<SourceRequest> SourceRequestOf(const PlanRequest& request, const ModelIdentity& model,
                                      const std::optional<std::string>& cost,
                                      const std::string& path);

// True of a file that ends in .json or is JSON by its first character, and of standard input ("-").
// Anything else is a model.
bool IsGraphFile(const std::string& path);

Result<Source> LoadSource(const SourceRequest& request);

}  // namespace ckplan
