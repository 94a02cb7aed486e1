// Fuses the operators of an attention into one FusedAttention (lib/problem/ops/attention.h).
//
//   Q, K ─▶ MatMul ─▶ scale ─▶ mask, bias ─▶ Softmax ─▶ Where(IsNaN) ─▶ MatMul with V ─▶ Y
//
// It searches around each Softmax for the forms that exporters write: the scale may be a Mul or Div
// of the scores or of their factors, a mask may be added or selected by Where, and views may be in
// between. Transposes of queries, keys, values and output become orders of axes, and an Expand of
// keys and values to more heads becomes shared heads. ONNX's own Attention is fused as well.
// Operators whose results are read elsewhere stay separate.
//
// The last operator is replaced, and those before it lose their readers. The new operator takes the
// name and the file position of the Softmax.
#pragma once

#include "lib/files/model/model_impl.h"
#include "lib/planning/plan/model_variant.h"
#include "lib/problem/ops/autograd.h"

namespace ckplan {

// kCaptured fuses only what was one operation in PyTorch: operators whose metadata name
// scaled_dot_product_attention (origin.h) and, in files without metadata, those that scale queries
// and keys equally, as exporters write that operation. What PyTorch computes before it stays
// separate: repeated keys and values, and scaled queries. Under Autograd::kTorchCuda, dropout is
// allowed, as in GPU kernels.
void FuseAttention(Model::Impl& model, FusedOperators fused, Autograd autograd);

}  // namespace ckplan
