// The types of results: what ONNX's rules make of an operator's inputs, and where they know none,
// what the file declares.
#pragma once

#include <string>
#include <vector>

#include "lib/model/bind_dims.h"
#include "lib/model/scope.h"

namespace ckplan {

class TypeChooser {
 public:
  explicit TypeChooser(const BoundDims& bound);

  // The type of a result of `operation` that is called `name`, which ONNX's rules know as `made`.
  onnx::TypeProto Choose(const std::string& name, const Scope& scope,
                         const ModelOperation& operation, const onnx::TypeProto& made);

  // Notes where a result of `maker` is declared otherwise than it is made and planned.
  void Compare(const std::string& name, const Scope& scope, const std::string& maker,
               const onnx::TypeProto& made, const onnx::TypeProto& planned);

  // What Compare found, as one sentence; empty if nothing.
  std::string Warning() const;

 private:
  const BoundDims& bound_;
  bool compares_ = true;
  std::vector<std::string> contradictions_;
};

}  // namespace ckplan
