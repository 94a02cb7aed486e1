// Which constants of a model are operands that shapes are computed from, such as the scales of a
// Resize; told from the file alone, before any dimension is bound.
//
// A float initializer is usually a weight: no plan depends on its contents, and training changes
// them. A few are numbers of the graph. A constant is a shape operand if it stands where an
// operator reads a number that its shape depends on, or if such a number, or an integer, is
// computed from it by operations that are folded, all of whose operands are constants or shapes of
// tensors.
#pragma once

#include <map>
#include <string>
#include <unordered_set>

#include "lib/model/functions.h"
#include "onnx/onnx_pb.h"

namespace ckplan {

class ShapeOperands {
 public:
  // Names of values. Branches of control flow share the names of the graph around them.
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
