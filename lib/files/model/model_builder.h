// Builds the flat graph of Model::Impl: adds values and operations under unique names, infers their
// types, and folds small constants.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/base/result.h"
#include "lib/files/model/bind_dims.h"
#include "lib/files/model/declared_types.h"
#include "lib/files/model/follow_batch.h"
#include "lib/files/model/model_impl.h"
#include "lib/files/model/scope.h"
#include "lib/files/model/step_part.h"
#include "lib/files/model/unknown_shapes.h"

namespace ckplan {

class ModelBuilder {
 public:
  // All arguments are kept as references. `follower` is null if the batch is that of the file.
  ModelBuilder(Model::Impl& model, const BoundDims& bound, BatchFollower* follower);

  void Reserve(size_t nodes);

  void AddInputs(Scope& scope);
  // With a part, only those that it needs.
  void AddInitializers(const onnx::GraphProto& graph, Scope& scope, const StepPart* part = nullptr);
  ValueIndex AddValue(const std::string& name, Scope& scope, ModelValue::Source source);
  // Adds values of unknown types, for a node that cannot be an operation.
  void AddUnknownOutputs(const onnx::NodeProto& node, Scope& scope);
  // Makes `name` stand for a value of an inner scope, which `maker` returns.
  void AddName(const std::string& name, ValueIndex value, const std::string& maker, Scope& scope);

  // Returns the node's own name, or "Conv:out" if it has none, with a suffix if that is taken.
  std::string NodeName(const onnx::NodeProto& node, const Scope& scope);
  // Appends the operation of a node. Returns null, and adds unknown outputs, if the node has the
  // wrong number of operands. The result is valid until the next operation is appended.
  const ModelOperation* Append(const onnx::NodeProto& node, std::vector<ValueIndex> inputs,
                               Scope& scope);
  // Appends the operation of a node that replaces a node of the file. Returns its outputs.
  std::vector<ValueIndex> AppendMade(onnx::NodeProto made, std::vector<ValueIndex> inputs,
                                     Scope& scope);

  // Records why the newest operation does not take the shapes that are asked for. What is known
  // last is the most precise.
  void AddMisfit(std::string fault);
  // Records that the graph contradicts itself.
  void AddFault(std::string fault) { faults_.push_back(std::move(fault)); }
  const std::vector<std::string>& faults() const { return faults_; }

  // Returns where declared types contradict the inferred ones; empty if nowhere.
  std::string TypeWarning() const { return types_.Warning(); }
  // As CheckShapeFaults (unknown_shapes.h).
  Result<Done> CheckFaults(const std::vector<bool>& is_needed, const std::string& file);

 private:
  void SetType(ModelValue& value, const onnx::TypeProto& type);
  // Returns whether the contents may be a size, and are worth reading.
  bool AddInitializer(const std::string& name, const onnx::TensorProto& tensor, const Dims& dims,
                      Scope& scope);
  void SetContents(std::optional<ConstantValue> contents);
  int64_t OwnOpset(const onnx::NodeProto& node, const Scope& scope) const;
  ModelOperation MakeOperation(const onnx::NodeProto& node, std::vector<ValueIndex> inputs,
                               const Scope& scope);
  const ModelOperation& AppendOperation(ModelOperation operation, Scope& scope);
  void SetTypes(const ModelOperation& operation, const Scope& scope);
  onnx::TypeProto WithBatch(onnx::TypeProto type, const ModelOperation& operation,
                            const onnx::TypeProto& inferred);
  void FindMisfit(const ModelOperation& operation, const std::string& onnx_fault);
  void Fold(const ModelOperation& operation);

  Model::Impl& model_;
  const BoundDims& bound_;
  BatchFollower* const follower_;
  const bool has_other_shapes_;  // Inputs have other shapes than in the file.
  TypeChooser types_;
  std::unordered_map<std::string, int> used_value_names_;
  std::unordered_map<std::string, int> used_node_names_;
  ShapeFaults shape_faults_;
  std::vector<std::string> faults_;
};

}  // namespace ckplan
