// Reads plan files, or models that contain a plan, together with the plan's graph.
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

// Reads the plan, then the model with the plan's settings. `plan_path` may also be an annotated
// model, which contains both. If `model_path` is empty, looks for the model in the plan's folder
// under the name in the plan. Fails with kCheckFailed if the plan is for another model.
Result<PlanFile> ReadPlanFile(const std::string& plan_path, const std::string& model_path,
                              const FilesOfPlan& files);

// Returns the faults of a plan read from a file, one line each: those that lib/planning/plan/check
// finds, and contradictions between the file and its source about the model, its costs, or figures
// that no command relies on. `step`, `identity` and `read` come from the source; see Source.
std::vector<std::string> FindPlanFaults(const TrainingStep& step, const ModelIdentity& identity,
                                        const PlanRequest& read, const Plan& plan);
std::vector<std::string> FindPlanFileFaults(const PlanFile& file);

// The text of a plan and where it was found.
struct PlanJsonText {
  std::string text;
  std::string where;         // For messages: "plan.json", "the plan in net.onnx".
  bool is_embedded = false;  // Found in a model.
};
// Returns the plan in a model, or nullopt if it contains none.
Result<std::optional<PlanJsonText>> ReadPlanInModel(const std::string& model_path);
// Reads a plan file or the plan in an annotated model. Fails with kInvalidInput if the file is
// neither.
Result<PlanJsonText> ReadPlanText(const std::string& path);

// True if `path`, an argument after the plan `earlier`, is another plan rather than the model of
// `earlier`: a JSON document with a request, or an annotated model after another one. A path that
// can be read only once, such as a pipe, counts as a model.
bool IsAnotherPlan(const std::string& path, const std::string& earlier);

// Reads the part of a plan file or annotated model that needs no graph.
Result<PlanDigest> ReadPlanDigestFile(const std::string& plan_path);

// Creates an annotated model's markers (docs/onnx-markers.md) from a plan, and compares a model's
// markers with its plan.

// Returns the markers of a plan without faults for the model at `model_path`, which `source` was
// read from. Reads the model again, because a source does not say which inputs and outputs of the
// file's nodes its tensors are. `plan_json` is the plan's text. Fails like reading the model.
Result<Annotation> AnnotationOf(const Source& source, const Plan& plan,
                                const std::string& model_path, std::string plan_json);

// Returns the faults in the markers of the model at `plan_path`, which contains the plan of `file`;
// one line each. The plan itself must have no faults. Empty if `plan_path` is a plan file. Fails
// with kIo or kInvalidInput if the model can't be read again.
Result<std::vector<std::string>> ValidateMarkers(const PlanFile& file,
                                                 const std::string& plan_path);

}  // namespace ckplan
