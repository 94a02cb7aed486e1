// What identifies a model: its graph, without its weights.
//
// Counted are, in the order of the file where that order means something and sorted where it does
// not: the operator sets; inputs, outputs, initializers and declared values by name, type and
// shape, with the names of dimensions; nodes by name, operator, operands and attributes; functions;
// and the contents of those constants that shapes depend on, which are small integers, booleans,
// and the floats that ShapeOperands names. docs/loader.md has the list of what does not count.
//
// The hash is of the message that protobuf has read, not of its bytes, so that neither the order
// of fields nor the form in which a tensor stores its elements counts. The cost is in the number of
// nodes, since the contents of large tensors were left out when the file was scanned.
#pragma once

#include <string>

#include "onnx/onnx_pb.h"

namespace ckplan {

// 64 hexadecimal digits.
std::string GraphHash(const onnx::ModelProto& model);

}  // namespace ckplan
