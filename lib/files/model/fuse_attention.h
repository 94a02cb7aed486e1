// Reads the operators of an attention as one FusedAttention (lib/problem/ops/attention.h).
//
//   Q, K ─▶ MatMul ─▶ scale ─▶ mask, bias ─▶ Softmax ─▶ Where(IsNaN) ─▶ MatMul with V ─▶ Y
//
// It finds them around each Softmax, as exporters write them: the scale may be a Mul or Div of the
// scores or of their factors, a mask may be added or be chosen by Where, and views may stand
// between. Transposes of queries, keys, values and output become orders of axes, and an Expand of
// keys and values to more heads becomes heads that share them. ONNX's own Attention becomes one as
// well. Operators whose results are read elsewhere stay apart.
//
// The last operator is replaced; those before it are left without readers. The new one has the name
// and the place in the file of the Softmax.
#pragma once

#include "lib/files/model/model_impl.h"
#include "lib/planning/plan/model_variant.h"
#include "lib/problem/ops/autograd.h"

namespace ckplan {

// kCaptured takes only what was one operation in PyTorch: operators whose metadata name
// scaled_dot_product_attention (see origin.h), and, in files without metadata, those that scale
// queries and keys alike, as exporters write that operation. What PyTorch makes before it stays
// apart: keys and values that are repeated for more heads, and scaled queries. Under
// Autograd::kTorchCuda the probabilities may be dropped, as kernels for GPUs do.
void FuseAttention(Model::Impl& model, FusedOperators fused, Autograd autograd);

}  // namespace ckplan
