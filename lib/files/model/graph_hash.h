// The identity of a model: a hash of its graph without its weights.
//
// The hash covers, in file order where the order matters and sorted otherwise: the operator sets;
// inputs, outputs, initializers and declared values by name, type and shape, with the names of
// dimensions; nodes by name, operator, operands and attributes; functions; and the contents of
// constants that shapes depend on: small integers, booleans, and the floats of ShapeOperands.
// docs/loader.md lists what the hash omits.
//
// The hash covers the parsed message, not the file's bytes, so neither the order of fields nor the
// encoding of tensors matters. The cost is linear in the number of nodes, because large tensors are
// skipped when the file is scanned.
#pragma once

#include <map>
#include <string>
#include <unordered_set>

#include "lib/files/model/scope.h"
#include "onnx/onnx_pb.h"

namespace ckplan {

// Finds the constants that a model's shapes are computed from, such as the scales of a Resize,
// using only the file, before any dimension is bound.
//
// A float initializer is usually a weight: no plan depends on its contents, and training changes
// them. A few belong to the graph. A constant is a shape operand if an operator's shape depends on
// it as a number, or if such a number, or an integer, is computed from it by folded operations
// whose operands are all constants or shapes of tensors.
class ShapeOperands {
 public:
  // Names of values. Branches of control flow share the names of the enclosing graph.
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
