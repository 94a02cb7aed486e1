// ONNX's type and shape inference, for one operation at a time.
//
// Calls each operator's rule directly, in graph order, with all values folded so far. This needs
// one pass; alternating inference of the whole graph with folding needs up to ten.
#pragma once

#include <string>
#include <vector>

#include "lib/files/model/bind_dims.h"
#include "lib/files/model/model_impl.h"
#include "lib/files/model/scope.h"
#include "onnx/onnx_pb.h"

namespace ckplan {

struct InferredTypes {
  std::vector<onnx::TypeProto> outputs;  // One per output; unset if unknown.
  // Why the operation can't have these inputs and attributes, from AttributeFault
  // (operation_faults.h) or in ONNX's words; empty if it can.
  std::string fault;
};

InferredTypes InferTypes(const Model::Impl& model, const ModelOperation& operation);

onnx::TypeProto TensorOfType(int32_t elem_type, const Dims& dims);

// True if the type is a tensor whose dimensions are all known.
bool IsFullTensor(const onnx::TypeProto& type);

// Chooses the types of results: those that ONNX's rules infer from an operator's inputs, or else
// those that the file declares.

// True if an input's shape differs from the file's.
bool HasOtherShapes(const BoundDims& bound);

class TypeChooser {
 public:
  explicit TypeChooser(const BoundDims& bound);

  // Returns the type of the result `name` of `operation`, for which ONNX's rules infer `made`.
  onnx::TypeProto Choose(const std::string& name, const Scope& scope,
                         const ModelOperation& operation, const onnx::TypeProto& made);

  // Records a contradiction if the declared type of a result of `producer` differs from the
  // inferred and planned ones.
  void Compare(const std::string& name, const Scope& scope, const std::string& producer,
               const onnx::TypeProto& made, const onnx::TypeProto& planned);

  // Returns the contradictions as one sentence; empty if none.
  std::string Warning() const;

 private:
  const BoundDims& bound_;
  bool compares_ = true;
  std::vector<std::string> contradictions_;
};

}  // namespace ckplan
