// Properties of each value of a model in training: whether it depends on the batch, needs a
// gradient, is a trained parameter, or is a view of another.
#pragma once

#include <vector>

#include "lib/files/model/model_impl.h"
#include "lib/problem/ops/op_spec.h"
#include "lib/problem/ops/op_table.h"

namespace ckplan {

struct ValueFacts {
  // Depends on the contents of the batch or on a random number, so each step computes it. All other
  // values are constant during a step, such as integers that describe shapes (sizes, axes, masks of
  // known shapes). Integers that are computed from the batch and read by a live operation are
  // tensors without a gradient, because they occupy memory.
  bool is_batch = false;
  bool requires_grad = false;
  // A gradient could flow back from this value to a float of the batch or a trained parameter. What
  // is computed from an ArgMax, a comparison or tokens alone has none, whatever its type.
  bool is_differentiable = false;
  // For constants: gradients can flow back from this value to the initializers that it is computed
  // from.
  bool may_be_trained = false;
  // For constants: a Constant, or a ConstantOfShape of known shape, possibly moved or cast. Old
  // exporters write weights in this form; the operations that read it decide whether it is a
  // weight.
  bool is_literal = false;
  // For constants: a frozen parameter, or computed from frozen parameters and nothing trainable.
  bool is_frozen = false;
  // Integers that represent rounded floats, as QuantizeLinear produces, and carry the gradient of
  // straight-through estimation.
  bool is_rounded = false;
  // Quantized weights, or casts, shifts and products of them, before a scale is applied.
  bool is_unscaled = false;
  // The value whose memory this one uses; itself unless it is a view.
  ValueIndex root = kNoValue;
};

struct OperationFacts {
  // The operation as the planner counts it. Operand::has_gradient marks the inputs that get a
  // gradient, as activations or parameters, and the outputs that receive one.
  OpSpec spec;
  const OpRule* rule = nullptr;
  bool is_batch = false;  // Runs in each step.
  bool is_view = false;
  bool is_live = false;  // A trained output of the model depends on it.
  // For constants: a gradient of the step flows through it to trained parameters.
  bool has_backward = false;
  // For each input: true for a trained parameter or a constant computed from one. For operations on
  // constants: true if gradients flow on to the input.
  std::vector<bool> reads_trained;
  // Bytes of the gradients of trained parameters that no later operation reads.
  Bytes parameter_gradients;
  // Bytes of the gradients of trained parameters that later operations also read. They are added to
  // the gradients that backward has computed by then.
  Bytes added_gradients;
};

struct ModelFacts {
  std::vector<ValueFacts> values;
  std::vector<OperationFacts> operations;
  // Float results that depend on the batch, with views replaced by their roots, without duplicates.
  std::vector<ValueIndex> outputs;
  // Bytes of trained parameters, running statistics, other float constants and quantized constants.
  Bytes parameters;
  Bytes parameter_gradients;          // Gradients of trained parameters only.
  std::vector<ValueIndex> counted;    // All values counted in `parameters`, ascending.
  std::vector<ValueIndex> quantized;  // Parameters stored in 8 bits or fewer.
  std::vector<int32_t> rounding;      // Operations that round and pass gradients through.
  std::vector<ValueIndex> trained;    // Initializers and literals with a gradient.

  const ValueFacts& value(ValueIndex i) const { return values[static_cast<size_t>(i)]; }
  ValueFacts& value(ValueIndex i) { return values[static_cast<size_t>(i)]; }
};

ModelFacts FindFacts(const Model::Impl& model);

}  // namespace ckplan
