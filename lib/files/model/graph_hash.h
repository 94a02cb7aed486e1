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

#include <map>
#include <string>
#include <unordered_set>

#include "lib/files/model/scope.h"
#include "onnx/onnx_pb.h"

namespace ckplan {

// Finds the constants of a model from which shapes are computed, such as the scales of a Resize. It
// uses only the file, before any dimension is bound.
//
// A float initializer is usually a weight: no plan depends on its contents, and training changes
// them. A few belong to the graph. A constant is a shape operand if an operator reads it as a
// number on which its shape depends. It is one as well if such a number, or an integer, is computed
// from it by folded operations, all of whose operands are constants or shapes of tensors.
class ShapeOperands {
 public:
  // The names of values. Branches of control flow share the names of the graph around them.
  using Names = std::unordered_set<std::string>;

  explicit ShapeOperands(const onnx::ModelProto& model);

  const Names& InGraph() const { return in_graph_; }
  const Names& InFunction(const onnx::FunctionProto& function);

 private:
  friend class ShapeOperandFinder;

  ModelFunctions functions_;
  std::map<const onnx::FunctionProto*, Names> in_functions_;
  Names in_graph_;
  int depth_ = 0;
};

// Returns 64 hexadecimal digits.
std::string GraphHash(const onnx::ModelProto& model);

}  // namespace ckplan
