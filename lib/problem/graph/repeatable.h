// Decides by the type of an operation whether it may run twice, for joint graphs that do not say.
#pragma once

#include <string_view>

namespace ckplan {

// Returns false for operations whose second run may give another result or act twice: routers and
// searches (TopK, sort, argmax), which may choose differently if values differ in the last bit;
// fused attention, whose saved statistics and random state belong to one run; random numbers; and
// communication. Types are those of PyTorch ("aten.topk.default") and of ONNX ("TopK"), with or
// without the name of their library and of their overload.
bool MayRepeatByType(std::string_view type);

// Returns whether operations of that type draw random numbers.
bool IsRandomByType(std::string_view type);

}  // namespace ckplan
