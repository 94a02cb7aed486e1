// All inputs and results of one training step, for comparison with other programs.
#pragma once

#include <string>

#include "lib/base/result.h"
#include "lib/executor/backend/backend.h"
#include "lib/executor/core/constant_store.h"
#include "lib/executor/core/loss.h"
#include "lib/executor/core/placed_program.h"
#include "lib/executor/core/step_operators.h"
#include "lib/files/model/step_graph.h"

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
