// All inputs and results of one training step, for comparison with other programs.
#pragma once

#include <string>

#include "lib/backend/backend.h"
#include "lib/base/result.h"
#include "lib/exec/constant_store.h"
#include "lib/exec/loss.h"
#include "lib/exec/placed_program.h"
#include "lib/exec/step_operators.h"
#include "lib/model/step_graph.h"

namespace ckplan {

// Runs one step and returns an ONNX model without nodes whose initializers are its tensors:
//
//   input/NAME, output/NAME, output_gradient/NAME, parameter/NAME, parameter_gradient/NAME
//
// Parameters have their values from before the step. kUnsupported: more than 2 GB, which an ONNX
// file cannot hold.
Result<std::string> TakeSnapshot(Backend& backend, const StepGraph& step,
                                 const StepOperators& operators, ConstantStore& constants,
                                 const PlacedProgram& plan, LossKind loss, uint64_t seed);

}  // namespace ckplan
