// Reads the graph to plan for from a model or from a graph.json, with the settings of a request.
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

// kUsage: the request does not apply to this kind of file. kCheckFailed: `planned` is given, and
// the file is another model; this is checked before the request is applied. kTimeout: stopped
// (lib/base/stop.h). Other errors are those of reading the file.
Result<Source> LoadSource(const std::string& path, const PlanRequest& request,
                          const ModelIdentity* planned = nullptr);

// Returns what reads this file with another request, by LoadSource.
ReadSource ReaderOf(std::string path);

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
