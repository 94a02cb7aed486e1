// Training steps with plain stochastic gradient descent, using a plan or a schedule that keeps
// everything.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/executor/backend/backend.h"
#include "lib/executor/core/constant_store.h"
#include "lib/executor/core/loss.h"
#include "lib/executor/core/program.h"
#include "lib/executor/core/step_operators.h"
#include "lib/files/model/step_graph.h"

namespace ckplan {

struct TrainOptions {
  uint64_t seed = 0;
  LossKind loss = LossKind::kCrossEntropy;
  int steps = 1;
  double learning_rate = 0.01;
};

struct TrainedStep {
  double loss = 0;  // Computed before the parameters are updated.
  double seconds = 0;
};

// All steps use the same batch; random operators draw new numbers in each step. `after_step` is
// called after every step.
Result<std::vector<TrainedStep>> Train(Backend& backend, const StepGraph& step,
                                       const StepOperators& operators, ConstantStore& constants,
                                       const PlacedProgram& plan, const TrainOptions& options,
                                       const std::function<void(const TrainedStep&)>& after_step);

// All inputs and results of one training step, for comparison with other programs.

// Runs one step and returns an ONNX model without nodes that stores the step's tensors as
// initializers:
//
//   input/NAME, output/NAME, output_gradient/NAME, parameter/NAME, parameter_gradient/NAME
//
// Parameters have their values from before the step. kUnsupported: more than 2 GB, which an ONNX
// file cannot hold.
Result<std::string> TakeSnapshot(Backend& backend, const StepGraph& step,
                                 const StepOperators& operators, ConstantStore& constants,
                                 const PlacedProgram& plan, LossKind loss, uint64_t seed);

}  // namespace ckplan
