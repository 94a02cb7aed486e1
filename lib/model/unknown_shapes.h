// Reports what is wrong with a model whose shapes cannot all be determined.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/base/result.h"
#include "lib/model/model_impl.h"

namespace ckplan {

// An error "FILE: WHAT: the first fault (and 7 more)", with the next few faults as notes.
Error InvalidModel(const std::string& file, std::string_view what,
                   const std::vector<std::string>& faults);

// kUnsupported: the nodes or values with these names make or read what is not a tensor.
Error NoTensors(const std::string& file, const std::vector<std::string>& names);

// kInvalidInput: a value that something reads has no known shape. The message names the node where
// the unknown shapes begin, its operator and what was known. kUnsupported: a value is not a tensor.
// `onnx_faults` holds ONNX's error messages, by operation.
Result<Done> CheckShapesKnown(const Model::Impl& model,
                              const std::unordered_map<int32_t, std::string>& onnx_faults,
                              const std::string& file);

}  // namespace ckplan
