// Reads the operators of an attention as one FusedAttention (lib/ops/fused_attention.h).
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

#include "lib/model/model_impl.h"

namespace ckplan {

void FuseAttention(Model::Impl& model);

}  // namespace ckplan
