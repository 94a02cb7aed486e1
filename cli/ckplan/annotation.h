// A plan as markers in its model's file; docs/onnx-markers.md tells what they are.
#pragma once

#include <string>
#include <vector>

#include "cli/ckplan/source.h"
#include "lib/base/result.h"
#include "lib/plan/plan.h"

namespace ckplan {

// Writes the model at `model_path`, from which `source` was read, with the plan to `out_path`.
// Returns warnings.
Result<std::vector<std::string>> WriteAnnotatedModel(const Source& source, const Plan& plan,
                                                     const std::string& model_path,
                                                     const std::string& out_path);

}  // namespace ckplan
