// What is planned: a graph, from a model or from a graph.json, read in the way that a request says.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/graph/tensor_graph.h"
#include "lib/model/model.h"
#include "lib/plan/plan.h"
#include "lib/plan/request.h"

namespace ckplan {

struct Source {
  TensorGraph graph;
  ModelIdentity identity;
  // What was asked, with what reading has settled: all dimensions, and the costs' name and unit.
  PlanRequest request;
  // What follows is set for a model, not for a graph file; see ModelGraph.
  bool is_model = false;
  std::vector<ModelNodeRole> roles;
  std::vector<std::string> warnings;
};

// kUsage: a request that is none for such a file. Else the errors of reading it.
Result<Source> LoadSource(const std::string& path, const PlanRequest& request);

// A model, and the graph that the request makes of it, for those who run it as well. Buffers are
// not rounded up: see AlignSizes.
struct ModelSource {
  Model model;
  ModelGraph lowered;
};
Result<ModelSource> LoadModelSource(const std::string& path, const PlanRequest& request);

// Kept apart from reading, so that it can be asked before.
Result<Done> CheckCostModel(const std::string& text);

// The request that reads the source of a plan once more, as it was read for the plan. `cost` is
// needed where the plan's costs came from a file, whose path no plan holds.
Result<PlanRequest> RequestToReadAgain(const PlanRequest& plan,
                                       const std::optional<std::string>& cost);

// True of a file that ends in .json or is JSON by its first character, and of standard input ("-").
// Anything else is a model.
bool IsGraphFile(const std::string& path);

}  // namespace ckplan
