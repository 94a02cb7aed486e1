// Reports the faults of a model whose shapes cannot all be determined.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/base/result.h"
#include "lib/model/model_impl.h"

namespace ckplan {

// Returns an error "FILE: WHAT: the first fault (and 7 more)", with the next few faults as notes.
Error InvalidModel(const std::string& file, std::string_view what,
                   const std::vector<std::string>& faults);

// kUnsupported: the nodes or values with these names make or read something that is not a tensor.
Error NoTensors(const std::string& file, const std::vector<std::string>& names);

// kInvalidInput: a value that an operation reads has no known shape. The message names the node
// where the unknown shapes begin, its operator and the known sizes. kUnsupported: a value is not a
// tensor. `onnx_faults` holds ONNX's error messages, by operation.
Result<Done> CheckShapesKnown(const Model::Impl& model,
                              const std::unordered_map<int32_t, std::string>& onnx_faults,
                              const std::string& file);

}  // namespace ckplan
