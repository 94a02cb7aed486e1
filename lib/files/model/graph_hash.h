// The identity of a model: a hash of its graph without its weights.
//
// The hash covers, in the order of the file if that order matters and sorted otherwise: the
// operator sets; inputs, outputs, initializers and declared values by name, type and shape, with
// the names of dimensions; nodes by name, operator, operands and attributes; functions; and the
// contents of those constants on which shapes depend: small integers, booleans, and the floats that
// ShapeOperands names. docs/loader.md lists what the hash leaves out.
//
// The hash covers the message that protobuf has read, not its bytes, so neither the order of fields
// nor the form in which a tensor stores its elements matters. The cost is linear in the number of
// nodes, since the contents of large tensors were left out when the file was scanned.
#pragma once

#include <string>

#include "onnx/onnx_pb.h"

namespace ckplan {

// Returns 64 hexadecimal digits.
std::string GraphHash(const onnx::ModelProto& model);

}  // namespace ckplan
