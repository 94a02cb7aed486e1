// ONNX's type and shape inference, for one operation at a time.
//
// Each operator's rule is called directly, in the order of the graph, given all values folded so
// far. This needs one pass; alternating inference of the whole graph with folding needs up to ten.
#pragma once

#include <string>
#include <vector>

#include "lib/files/model/bind_dims.h"
#include "lib/files/model/model_impl.h"
#include "lib/files/model/scope.h"
#include "onnx/onnx_pb.h"

namespace ckplan {

struct InferredTypes {
  std::vector<onnx::TypeProto> outputs;  // One for each output; unset if the type stays unknown.
  // Why the operation cannot have these inputs and attributes, by AttributeFault
  // (operation_faults.h) or in ONNX's words; empty if it can.
  std::string fault;
};

InferredTypes InferTypes(const Model::Impl& model, const ModelOperation& operation);

onnx::TypeProto TensorOfType(int32_t elem_type, const Dims& dims);

// Returns whether the type is a tensor whose dimensions are all known.
bool IsFullTensor(const onnx::TypeProto& type);

// Chooses the types of results: those that ONNX's rules derive from an operator's inputs or, if the
// rules do not know them, those that the file declares.

// Returns whether an input is given another shape than in the file.
bool HasOtherShapes(const BoundDims& bound);

class TypeChooser {
 public:
  explicit TypeChooser(const BoundDims& bound);

  // Returns the type of the result `name` of `operation`, for which ONNX's rules give `made`.
  onnx::TypeProto Choose(const std::string& name, const Scope& scope,
                         const ModelOperation& operation, const onnx::TypeProto& made);

  // Records that a result of `producer` is declared with another type than the made and planned
  // ones.
  void Compare(const std::string& name, const Scope& scope, const std::string& producer,
               const onnx::TypeProto& made, const onnx::TypeProto& planned);

  // Returns the findings of Compare as one sentence; empty if there are none.
  std::string Warning() const;

 private:
  const BoundDims& bound_;
  bool compares_ = true;
  std::vector<std::string> contradictions_;
};

}  // namespace ckplan
