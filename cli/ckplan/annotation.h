// Writes a plan as markers into its model's file; docs/onnx-markers.md explains them.
#pragma once

#include <string>

#include "lib/files/emit/emitters.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/planner/source.h"

namespace ckplan {

// Returns a function that writes the model at `model_path`, from which `source` was read, with the
// plan and its JSON to a file. Returns an empty function if the source is a graph file. The
// function refers to `source` and `plan`, which must outlive it.
Annotator AnnotatorOf(const Source& source, const Plan& plan, const std::string& model_path);

}  // namespace ckplan
