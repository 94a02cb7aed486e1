// The attentions of ONNX Runtime's optimizer, as ONNX's own Attention: see decompose.h.
#pragma once

#include "lib/files/model/decomposition_builder.h"

namespace ckplan {

// Each returns false for a use that has no such form.
bool MakeAttention(DecompositionBuilder& m);
bool MakeMultiHeadAttention(DecompositionBuilder& m);
bool MakeGroupQueryAttention(DecompositionBuilder& m);
bool MakeRotaryEmbedding(DecompositionBuilder& m);

}  // namespace ckplan
