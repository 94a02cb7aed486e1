// The markers of annotated models (docs/onnx-markers.md): made of a plan, and judged by it.
#pragma once

#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/model/annotate.h"
#include "lib/planner/plan_file.h"

namespace ckplan {

// The markers that a sound plan gives to the model at `model_path`, from which `source` was read.
// Reads the model once more, for a source does not say which inputs and outputs of the file's nodes
// its tensors are. `plan_json` is the plan's text. Errors are those of reading the model.
Result<Annotation> AnnotationOf(const Source& source, const Plan& plan,
                                const std::string& model_path, std::string plan_json);

// All that is wrong with the markers of the model at `plan_path`, in which the plan of `file`,
// which is sound, was found; one line for each fault. Nothing if `plan_path` is a plan file. kIo,
// kInvalidInput: the model cannot be read again.
Result<std::vector<std::string>> JudgeMarkers(const PlanFile& file, const std::string& plan_path);

}  // namespace ckplan
