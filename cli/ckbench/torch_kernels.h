// The kernels that PyTorch runs for a step of the same model in eager mode, and what they move.
//
// A node of the model is mapped to the kernels of the ATen operator that it was exported from;
// docs/gpu-model.md lists them with their sources. Three patterns are undone, because PyTorch runs
// them as one operator:
//
//   MatMul, Add of a bias          addmm: the library adds the bias as it stores the product
//   Mul, MatMul, Add, Softmax, IsNaN, Where, MatMul and the Transposes around them
//                                  scaled_dot_product_attention
//   Transpose elsewhere, Split     views
//
// An attention that the model is read with as one operator (--fuse attention) has the same kernels.
#pragma once

#include <vector>

#include "lib/base/units.h"
#include "lib/executor/cuda/traffic/kernel_traffic.h"
#include "lib/files/model/step_graph.h"

namespace ckplan {

enum class TorchAttention {
  kFused,  // One kernel forward, which stores no scores: what scaled_dot_product_attention takes.
  kPlain,  // Products, scale, mask and softmax as single operators: attn_implementation="eager".
};

struct TorchNode {
  cuda::Kernels forward, backward;
};

// One for each node of the step.
IdVector<NodeId, TorchNode> TorchKernels(const StepGraph& step, TorchAttention attention);

}  // namespace ckplan
