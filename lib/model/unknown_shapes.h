// Says what is wrong with a model whose shapes cannot all be known.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/base/result.h"
#include "lib/model/model_impl.h"

namespace ckplan {

// "FILE: WHAT: the first fault (and 7 more)", the next few as notes.
Error InvalidModel(const std::string& file, std::string_view what,
                   const std::vector<std::string>& faults);

// kInvalidInput if a value that something reads has no known shape: names the node, its operator
// and what was known, where the unknown begins, not where it spreads to. kUnsupported for values
// that are no tensors. `onnx_faults` is what ONNX objected to, by operation.
Result<Done> CheckShapesKnown(const Model::Impl& model,
                              const std::unordered_map<int32_t, std::string>& onnx_faults,
                              const std::string& file);

}  // namespace ckplan
