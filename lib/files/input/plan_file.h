// Reads plan files, and models that contain a plan, together with the graph that the plan is for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/files/model/annotate.h"
#include "lib/planning/plan/diff.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/planner/source.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

struct PlanFile {
  Source source;
  Plan plan;
  std::string model_path;
};

// Reads the plan, and then the model with the settings of the plan. `plan_path` may also be an
// annotated model, which contains both. If `model_path` is empty, the model is looked for in the
// folder of the plan, under the name that the plan gives. kCheckFailed: the plan is for another
// model.
Result<PlanFile> ReadPlanFile(const std::string& plan_path, const std::string& model_path,
                              const FilesOfPlan& files);

// Returns the faults of a plan that was read from a file, one line for each: those that
// lib/planning/plan/check finds, and any contradiction between the file and its source about the
// model, its costs, or figures that no command relies on. `step`, `identity` and `read` are those
// of the source; see Source.
std::vector<std::string> FaultsOfPlan(const TrainingStep& step, const ModelIdentity& identity,
                                      const PlanRequest& read, const Plan& plan);
std::vector<std::string> FaultsOfPlanFile(const PlanFile& file);

// The text of a plan, and where it was found.
struct PlanJsonText {
  std::string text;
  std::string where;         // What messages call the place: "plan.json", "the plan in net.onnx".
  bool is_embedded = false;  // Whether it was found in a model.
};
// Returns the plan in a model, or nothing if it contains none.
Result<std::optional<PlanJsonText>> ReadPlanInModel(const std::string& model_path);
// Reads a plan file or the plan in an annotated model. kInvalidInput: the file is neither.
Result<PlanJsonText> ReadPlanText(const std::string& path);

// Returns whether `path`, an argument after the plan `earlier`, holds a plan of its own rather than
// the model of that plan. A plan of its own is a JSON document that has a request, or an annotated
// model after another one. A path that can be read only once, such as a pipe, counts as a model.
bool IsPlanBeside(const std::string& path, const std::string& earlier);

// Reads the part of a plan file or annotated model that needs no graph.
Result<PlanDigest> ReadPlanDigestFile(const std::string& plan_path);

// Makes the markers of an annotated model (docs/onnx-markers.md) from a plan, and compares the
// markers of a model with its plan.

// Returns the markers that a plan without faults gives to the model at `model_path`, from which
// `source` was read. Reads the model once more, because a source does not say which inputs and
// outputs of the file's nodes its tensors are. `plan_json` is the plan's text. Errors are those of
// reading the model.
Result<Annotation> AnnotationOf(const Source& source, const Plan& plan,
                                const std::string& model_path, std::string plan_json);

// Returns the faults in the markers of the model at `plan_path`, in which the plan of `file` was
// found; one line for each. The plan itself must have no faults. Returns nothing if `plan_path` is
// a plan file. kIo, kInvalidInput: the model cannot be read again.
Result<std::vector<std::string>> ValidateMarkers(const PlanFile& file,
                                                 const std::string& plan_path);

}  // namespace ckplan
