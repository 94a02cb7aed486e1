// The attentions of ONNX Runtime's optimizer, as ONNX's own Attention: see decompose.h.
#pragma once

#include "lib/files/model/decomposition_maker.h"

namespace ckplan {

// Each returns false for a use that has no such form.
bool MakeAttention(DecompositionMaker& m);
bool MakeMultiHeadAttention(DecompositionMaker& m);
bool MakeGroupQueryAttention(DecompositionMaker& m);
bool MakeRotaryEmbedding(DecompositionMaker& m);

}  // namespace ckplan
