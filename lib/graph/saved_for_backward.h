// How much a step that keeps everything saves for its backward pass: what PyTorch users know as the
// sum of saved tensors. Differs from the peak, which also counts gradients and tensors that
// backward does not read.
#pragma once

#include "lib/base/units.h"
#include "lib/graph/tensor_graph.h"

namespace ckplan {

// Bytes of the distinct tensors that some backward reads, inputs of the model included.
Bytes SavedForBackward(const TensorGraph& graph);

}  // namespace ckplan
