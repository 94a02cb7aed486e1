// Chooses the types of results: those that ONNX's rules derive from an operator's inputs or, if the
// rules do not know them, those that the file declares.
#pragma once

#include <string>
#include <vector>

#include "lib/files/model/bind_dims.h"
#include "lib/files/model/scope.h"

namespace ckplan {

// Returns whether an input is given another shape than in the file.
bool HasOtherShapes(const BoundDims& bound);

class TypeChooser {
 public:
  explicit TypeChooser(const BoundDims& bound);

  // Returns the type of the result `name` of `operation`, for which ONNX's rules give `made`.
  onnx::TypeProto Choose(const std::string& name, const Scope& scope,
                         const ModelOperation& operation, const onnx::TypeProto& made);

  // Records that a result of `maker` is declared with another type than the made and planned ones.
  void Compare(const std::string& name, const Scope& scope, const std::string& maker,
               const onnx::TypeProto& made, const onnx::TypeProto& planned);

  // Returns the findings of Compare as one sentence; empty if there are none.
  std::string Warning() const;

 private:
  const BoundDims& bound_;
  bool compares_ = true;
  std::vector<std::string> contradictions_;
};

}  // namespace ckplan
