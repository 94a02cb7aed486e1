// A plan file together with what it is a plan for.
#pragma once

#include <optional>
#include <string>

#include "cli/ckplan/source.h"
#include "lib/base/result.h"
#include "lib/plan/diff.h"
#include "lib/plan/plan.h"

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

// What a plan file, or an annotated model, tells by itself.
Result<PlanDigest> ReadPlanDigestFile(const std::string& plan_path);

}  // namespace ckplan
