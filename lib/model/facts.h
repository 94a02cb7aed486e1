// What is true of each value of a model when it is trained: which depend on the batch, which need
// gradients, which constants are trained parameters, which are views of others.
#pragma once

#include <vector>

#include "lib/model/model_impl.h"
#include "lib/ops/op_spec.h"
#include "lib/ops/op_table.h"

namespace ckplan {

struct ValueFacts {
  // Depends on the contents of the batch or on a random number, so it exists anew in each step.
  // All else is constant during a step. Integer glue (shapes, axes, masks of known shapes) is
  // constant; integers that are computed from the batch and read by something live are tensors
  // without a gradient: their memory is real.
  bool is_batch = false;
  bool requires_grad = false;
  // Constants: computed from initializers in a way that gradients reach them.
  bool may_be_trained = false;
  // Constants: a Constant or ConstantOfShape of literal shape, also moved or cast. Old exporters
  // write weights so; whether it is one depends on who reads it.
  bool is_literal = false;
  ValueIndex root = kNoValue;  // The value whose memory this is; itself unless it is a view.
};

struct OperationFacts {
  // As the planner counts it. Operand::has_gradient says which inputs get a gradient, as part of
  // the batch or as parameters, and which gradients of outputs arrive.
  OpSpec spec;
  const OpRule* rule = nullptr;
  bool is_batch = false;  // Runs in each step.
  bool is_view = false;
  bool is_live = false;  // Some output of the model that is trained on depends on it.
  bool has_backward = false;
  // By input: a constant that is a trained parameter here.
  std::vector<bool> reads_trained;
};

struct ModelFacts {
  std::vector<ValueFacts> values;
  std::vector<OperationFacts> operations;
  std::vector<ValueIndex> outputs;  // Float results of the batch, views resolved, each once.
  Bytes parameters;                 // Trained ones, running statistics and other float buffers.
  Bytes parameter_gradients;        // Trained ones alone.

  const ValueFacts& value(ValueIndex i) const { return values[static_cast<size_t>(i)]; }
  ValueFacts& value(ValueIndex i) { return values[static_cast<size_t>(i)]; }
};

ModelFacts FindFacts(const Model::Impl& model);

}  // namespace ckplan
