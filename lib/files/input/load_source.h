// Reads the graph to plan from a model or a graph.json, with the settings of a request.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/files/model/model.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/planner/source.h"

namespace ckplan {

// Fails with kUsage if the request does not apply to this kind of file, with kCheckFailed if
// `planned` is given and the file is another model (checked before the request is applied), and
// with kTimeout if stopped (lib/base/stop.h). Other errors come from reading the file.
Result<Source> LoadSource(const std::string& path, const PlanRequest& request,
                          const ModelIdentity* planned = nullptr);

// Returns a function that reads this file with another request, using LoadSource.
ReadSource ReaderOf(std::string path);

// A model and its lowered graph, for programs that also run the model. Buffer sizes are not rounded
// up: see AlignSizes.
struct ModelSource {
  Model model;
  ModelGraph lowered;
  PlanRequest request;  // Completed; see Source.
  CostModel cost = {};
};
Result<ModelSource> LoadModelSource(const std::string& path, const PlanRequest& request,
                                    const ModelIdentity* planned = nullptr);

// A model as its file has it, before SourceOf reduces it to a device's part and applies the
// settings of the request that concern the graph as a whole.
struct WholeModel {
  Source source;
  std::vector<Parameter> parameters;
  std::vector<OpWork> works;  // By node; `cost` makes the costs of them.
  CostModel cost;
};
Result<WholeModel> LoadWholeModel(const std::string& path, const PlanRequest& request,
                                  const ModelIdentity* planned = nullptr);
Result<Source> SourceOf(WholeModel model, const PlanRequest& request);

// Checks the text of a cost model without reading a source, so that errors are found before a model
// is loaded.
Result<Done> CheckCostModel(const std::string& text);

// Returns the request that reads the source exactly as it was read for the plan. Fails with kUsage
// if a file that the plan was made with is missing, or one is given that it was not made with.
Result<PlanRequest> RequestForReread(const PlanRequest& plan, const FilesOfPlan& files);

// Returns the files of the source: `path` and, for a model, the files with its weights. Planning
// never reads those, but they must not be overwritten either.
std::vector<std::string> FilesOf(const std::string& path);

// True if the file is a graph: its name ends in .json, it begins like JSON, or it is a stream. All
// other files are models.
bool IsGraphFile(const std::string& path);

// Reads a JSON file. Fails with kInvalidInput if it is a stream without JSON; `what` is the
// expected content ("graph.json").
Result<std::string> ReadJsonFile(const std::string& path, std::string_view what);

}  // namespace ckplan
