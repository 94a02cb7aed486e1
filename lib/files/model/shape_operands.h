// Finds the constants of a model from which shapes are computed, such as the scales of a Resize. It
// uses only the file, before any dimension is bound.
//
// A float initializer is usually a weight: no plan depends on its contents, and training changes
// them. A few belong to the graph. A constant is a shape operand if an operator reads it as a
// number on which its shape depends. It is one as well if such a number, or an integer, is computed
// from it by folded operations, all of whose operands are constants or shapes of tensors.
#pragma once

#include <map>
#include <string>
#include <unordered_set>

#include "lib/files/model/functions.h"
#include "onnx/onnx_pb.h"

namespace ckplan {

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

}  // namespace ckplan
