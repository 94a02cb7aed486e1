// Makes the markers of an annotated model (docs/onnx-markers.md) from a plan, and compares the
// markers of a model with its plan.
#pragma once

#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/files/input/plan_file.h"
#include "lib/files/model/annotate.h"

namespace ckplan {

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
