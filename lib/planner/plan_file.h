// Reads plan files, and models that contain a plan, together with the graph that the plan is for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/plan/diff.h"
#include "lib/plan/plan.h"
#include "lib/planner/source.h"
#include "lib/schedule/training_step.h"

namespace ckplan {

struct PlanFile {
  Source source;
  Plan plan;
  std::string model_path;
};

// Reads the plan, and then the model in the way that the plan says. `plan_path` may also be an
// annotated model, which contains both. If `model_path` is empty, the model is looked for beside
// the plan, under the name that the plan gives. kCheckFailed: the plan is for another model.
Result<PlanFile> ReadPlanFile(const std::string& plan_path, const std::string& model_path,
                              const std::optional<std::string>& cost);

// All that is wrong with a plan that was read from a file, one line for each fault: what
// lib/plan/check finds, and what the file says otherwise than its source about the model, its
// costs, or figures that nobody relies on. `step`, `identity` and `read` are those of the source;
// see Source.
std::vector<std::string> JudgePlan(const TrainingStep& step, const ModelIdentity& identity,
                                   const PlanRequest& read, const Plan& plan);
std::vector<std::string> JudgePlanFile(const PlanFile& file);

// The text of a plan, and where it was found.
struct PlanJsonText {
  std::string text;
  std::string where;         // What messages call the place: "plan.json", "the plan in net.onnx".
  bool is_embedded = false;  // Whether it was found in a model.
};
// The plan in a model; nothing if it contains none.
Result<std::optional<PlanJsonText>> ReadPlanInModel(const std::string& model_path);
// Reads a plan file or the plan in an annotated model. kInvalidInput: the file is neither.
Result<PlanJsonText> ReadPlanText(const std::string& path);

// Whether `path` holds a plan of its own, rather than the model of the plan before it, `earlier`: a
// JSON document that has a request, or an annotated model behind another one. What can be read only
// once, as a pipe, is taken for a model.
bool IsPlanBeside(const std::string& path, const std::string& earlier);

// Reads the part of a plan file or annotated model that needs no graph.
Result<PlanDigest> ReadPlanDigestFile(const std::string& plan_path);

}  // namespace ckplan
