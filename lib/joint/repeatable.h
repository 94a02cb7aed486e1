// Whether operations may run twice, where a joint graph does not say so: by their types.
#pragma once

#include <string_view>

namespace ckplan {

// Not so for what a second run may make otherwise than the first, or do twice: choices of a router
// or a search (TopK, sort, argmax), since on values that differ in the last bit they may choose
// otherwise; fused attention, whose saved statistics and random state belong to one run; random
// numbers; and communication. Types are those of PyTorch ("aten.topk.default") and of ONNX
// ("TopK"), with or without the name of their library and of their overload.
bool MayRepeatByType(std::string_view type);

}  // namespace ckplan
