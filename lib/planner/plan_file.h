// Plan files, and models with a plan in them, together with what they are plans for.
#pragma once

#include <optional>
#include <string>

#include "lib/base/result.h"
#include "lib/plan/diff.h"
#include "lib/plan/plan.h"
#include "lib/planner/source.h"

namespace ckplan {

struct PlanFile {
  Source source;
  Plan plan;
  std::string model_path;
};

// Reads the plan, then the model as the plan says it was read. `plan_path` may also be an annotated
// model, which holds its plan and is its own model. An empty `model_path` stands for the file of
// the model's name beside the plan. kCheckFailed: the model is another one than the plan's.
Result<PlanFile> ReadPlanFile(const std::string& plan_path, const std::string& model_path,
                              const std::optional<std::string>& cost);

// The text of a plan, and where it was found.
struct PlanJsonText {
  std::string text;
  std::string where;         // In messages: "plan.json", "the plan in net.onnx".
  bool is_embedded = false;  // In a model.
};
// The plan in a model; nothing if it has none.
Result<std::optional<PlanJsonText>> ReadPlanInModel(const std::string& model_path);
// A plan file, or an annotated model. kInvalidInput if it is neither.
Result<PlanJsonText> ReadPlanText(const std::string& path);

// kCheckFailed unless the model at `path` is the one of the plan.
Result<Done> CheckSameModel(const ModelIdentity& planned, const std::string& path,
                            const std::string& sha256);

// What can be read from a plan file or an annotated model without its graph.
Result<PlanDigest> ReadPlanDigestFile(const std::string& plan_path);

}  // namespace ckplan
