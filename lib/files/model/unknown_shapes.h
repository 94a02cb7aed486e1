// Reports the faults of a model with shapes that can't be determined.
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

// True if a fault begins at this operation rather than at its inputs.
bool HasKnownInputs(const Model::Impl& model, const ModelOperation& operation);

// Returns why an operation can't read its inputs; empty if it can, or if some of them are unknown.
// `onnx_fault` is ONNX's message, if any: ONNX itself does not count the elements of a Reshape.
std::string MisfitOf(const Model::Impl& model, const ModelOperation& operation,
                     const std::string& onnx_fault);

// Why operations have no shapes, or shapes that no runtime accepts, by position.
struct ShapeFaults {
  // Why the operator rejects its operands and attributes, whatever the file declares.
  std::map<int32_t, std::string> of_operator;
  // Why an operation does not support the requested batch or shapes.
  std::map<int32_t, std::string> of_request;
};

// Both check only operations that produce a needed value (dead_ends.h).

// Fails with kInvalidInput if a node has invalid operands or attributes, even if the file declares
// its outputs. If input shapes were overridden, the message says so instead of citing ONNX. Fails
// with kUnsupported if an operation does not support the wanted batch.
Result<Done> CheckShapeFaults(const Model::Impl& model, const ShapeFaults& faults,
                              const BoundDims& bound, const std::vector<bool>& is_needed,
                              const std::string& file);

// Fails with kInvalidInput if a value that an operation reads has no known shape. The message names
// the node where the unknown shapes begin, its operator and the known sizes; the remedy names the
// inputs that determine it, or values at which the step could end. Fails with kUnsupported if a
// value is not a tensor.
Result<Done> CheckShapesKnown(const Model::Impl& model, const DeadEnds& dead_ends,
                              const std::vector<bool>& is_needed, const std::string& file);

}  // namespace ckplan
