// Reports the faults of a model whose shapes cannot all be determined.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/files/model/bind_dims.h"
#include "lib/files/model/dead_ends.h"
#include "lib/files/model/model_impl.h"

namespace ckplan {

// Returns an error "FILE: WHAT: the first fault (and 7 more)", with the next few faults as notes.
Error InvalidModel(const std::string& file, std::string_view what,
                   const std::vector<std::string>& faults);

// Returns whether a fault begins at this operation rather than at its inputs.
bool HasKnownInputs(const Model::Impl& model, const ModelOperation& operation);

// Returns why an operation cannot read its inputs as they are; empty if it can, or if not all of
// them are known. `onnx_fault` is ONNX's message, if any: ONNX itself does not count the elements
// of a Reshape.
std::string MisfitOf(const Model::Impl& model, const ModelOperation& operation,
                     const std::string& onnx_fault);

// Why operations have no shapes, or shapes that no runtime accepts, by their positions.
struct ShapeFaults {
  // Why the operator refuses its operands and attributes, whatever the file declares.
  std::map<int32_t, std::string> of_operator;
  // Why an operation does not take the batch or the shapes that are asked for.
  std::map<int32_t, std::string> of_request;
};

// Both judge the operations that make a needed value (dead_ends.h).

// kInvalidInput: a node has invalid operands or attributes, even if the file declares its outputs;
// if inputs were given other shapes than those of the file, the message says so instead of citing
// ONNX. kUnsupported: an operation does not take the wanted batch.
Result<Done> CheckShapeFaults(const Model::Impl& model, const ShapeFaults& faults,
                              const BoundDims& bound, const std::vector<bool>& is_needed,
                              const std::string& file);

// kInvalidInput: a value that an operation reads has no known shape. The message names the node
// where the unknown shapes begin, its operator and the known sizes, and the remedy the inputs whose
// contents decide it, or values at which the step could end instead. kUnsupported: a value is not a
// tensor.
Result<Done> CheckShapesKnown(const Model::Impl& model, const DeadEnds& dead_ends,
                              const std::vector<bool>& is_needed, const std::string& file);

}  // namespace ckplan
