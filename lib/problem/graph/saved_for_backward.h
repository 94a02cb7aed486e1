// How much a step that keeps everything saves for its backward pass: PyTorch users know it as the
// sum of saved tensors. It differs from the peak, which also counts gradients and tensors that no
// backward reads.
#pragma once

#include "lib/base/units.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

// Returns the bytes of the distinct tensors that some backward reads, including the model's inputs.
Bytes SavedForBackward(const TensorGraph& graph);

}  // namespace ckplan
