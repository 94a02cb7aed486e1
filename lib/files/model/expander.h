// Walks the file's nested graph for ExpandGraph (expand.h), in four parts: nodes and calls
// (expand.cc), branches and loops (expand_control_flow.cc), sequences (sequences.cc), and reporting
// what can't be planned (dead_ends.h). All add to the flat graph through a ModelBuilder
// (model_builder.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lib/base/result.h"
#include "lib/files/model/bind_dims.h"
#include "lib/files/model/dead_ends.h"
#include "lib/files/model/follow_batch.h"
#include "lib/files/model/infer_types.h"
#include "lib/files/model/model_impl.h"
#include "lib/files/model/scope.h"
#include "lib/files/model/step_part.h"
#include "lib/files/model/unknown_shapes.h"

namespace ckplan {

// Builds the flat graph of Model::Impl: adds values and operations with unique names, infers their
// types, and folds small constants.
class ModelBuilder {
 public:
  // Keeps all arguments as references. `follower` is null for the file's own batch.
  ModelBuilder(Model::Impl& model, const BoundDims& bound, BatchFollower* follower);

  void Reserve(size_t nodes);

  void AddInputs(Scope& scope);
  // With a part, adds only the initializers that it needs.
  void AddInitializers(const onnx::GraphProto& graph, Scope& scope, const StepPart* part = nullptr);
  ValueIndex AddValue(const std::string& name, Scope& scope, ModelValue::Source source);
  // Adds outputs of unknown types for a node that can't become an operation.
  void AddUnknownOutputs(const onnx::NodeProto& node, Scope& scope);
  // Binds `name` to a value of an inner scope, which `producer` returns.
  void AddName(const std::string& name, ValueIndex value, const std::string& producer,
               Scope& scope);

  // Returns the node's own name, or "Conv:out" if it has none, with a suffix if taken.
  std::string NodeName(const onnx::NodeProto& node, const Scope& scope);
  // Appends the operation of a node. If the node has the wrong number of operands, adds unknown
  // outputs and returns null. The result is valid until the next operation is appended.
  const ModelOperation* Append(const onnx::NodeProto& node, std::vector<ValueIndex> inputs,
                               Scope& scope);
  // Appends the operation of a node that replaces one of the file's. Returns its outputs.
  std::vector<ValueIndex> AppendMade(onnx::NodeProto made, std::vector<ValueIndex> inputs,
                                     Scope& scope);

  // Records why the newest operation does not fit the requested shapes. A later, more precise fault
  // replaces an earlier one.
  void AddShapeFault(std::string fault);
  // Records that the graph contradicts itself.
  void AddFault(std::string fault) { faults_.push_back(std::move(fault)); }
  const std::vector<std::string>& faults() const { return faults_; }
  // Forgets all but the first `count` faults.
  void DropFaults(size_t count) { faults_.resize(count); }

  // Returns where declared types contradict inferred ones; empty if they agree.
  std::string TypeWarning() const { return types_.Warning(); }
  // Like CheckShapeFaults (unknown_shapes.h).
  Result<Done> CheckFaults(const std::vector<bool>& is_needed, const std::string& file);

 private:
  void SetType(ModelValue& value, const onnx::TypeProto& type);
  // Returns true if the contents may be a size and are worth reading.
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
  void FindShapeFault(const ModelOperation& operation, const std::string& onnx_fault);
  void Fold(const ModelOperation& operation);

  Model::Impl& model_;
  const BoundDims& bound_;
  BatchFollower* const follower_;
  const bool has_other_shapes_;  // Some inputs have other shapes than in the file.
  TypeChooser types_;
  std::unordered_map<std::string, int> used_value_names_;
  std::unordered_map<std::string, int> used_node_names_;
  ShapeFaults shape_faults_;
  std::vector<std::string> faults_;
};

class Expander {
 public:
  Expander(Model::Impl& model, const BoundDims& bound, const std::string& file,
           BatchFollower* follower)
      : model_(model),
        bound_(bound),
        file_(file),
        follower_(follower),
        functions_(*model.proto),
        builder_(model, bound, follower) {}

  Result<Done> Run();

 private:
  using Values = std::vector<ValueIndex>;

  // ---- Nodes and calls: expand.cc --------------------------------------------------------------

  void Expand(const onnx::NodeProto& source, Scope& scope);
  void ExpandAll(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, Scope& scope);
  // Resolves the inputs of a node. Records a fault and returns nullopt if an input is not produced
  // before.
  std::optional<Values> ResolveInputs(const onnx::NodeProto& node, const Scope& scope);
  void ExpandCall(const onnx::NodeProto& node, const onnx::FunctionProto& function, Scope& scope);
  // Binds the node's outputs in the outer scope to the values `inner_names` of the inner one.
  void BindOutputs(const onnx::NodeProto& node, const std::vector<std::string>& inner_names,
                   const Scope& inner, Scope& scope);
  void AddOperation(const onnx::NodeProto& node, Scope& scope);
  // Replaces an operator of another domain, or of a newer operator set, by ONNX operators.
  bool AddDecomposed(const onnx::NodeProto& node, const Values& inputs, Scope& scope);
  // Returns the node adapted to the batch of its inputs: the file's own, or one with changed
  // attributes. Replaces changed operands in `inputs`.
  const onnx::NodeProto& FollowBatch(const onnx::NodeProto& node, Values* inputs,
                                     std::string* fault, Scope& scope);
  void AddOutputs(const Scope& scope);
  Result<Done> Report();
  // Removes operations whose inputs are missing because of dead ends or faults that no output
  // depends on, such as those in an If's other branch.
  void DropUnmade();

  // Adds unknown outputs for a node that can't be planned. `what` is the reason, such as "its
  // number of rounds is unknown".
  void AddDeadEnd(const onnx::NodeProto& node, DeadEnd::Kind kind, std::string what, Values reads,
                  Scope& scope);
  // Returns the values that the node's bodies read from enclosing scopes.
  Values CapturedBy(const onnx::NodeProto& node, const Scope& scope) const;
  const ConstantValue* KnownContents(ValueIndex value) const;
  // Warns once, and names an input that determines `deciding`, or says `otherwise`.
  void Warn(std::string text, ValueIndex deciding, const std::string& otherwise = "");

  // ---- Branches and loops: expand_control_flow.cc ----------------------------------------------

  void ExpandControlFlow(const onnx::NodeProto& node, Scope& scope);
  bool ExpandIf(const onnx::NodeProto& node, const Values& inputs, Scope& scope);
  void ExpandBranch(const onnx::NodeProto& node, const std::string& prefix,
                    const onnx::GraphProto& branch, Scope& scope);
  // Expands a branch and returns its output values.
  Values ExpandBody(const std::string& prefix, const onnx::GraphProto& branch, const Scope& scope);
  void ExpandCostlierBranch(const onnx::NodeProto& node, ValueIndex condition, Scope& scope);
  bool ExpandLoop(const onnx::NodeProto& node, const Values& inputs, Scope& scope);
  bool ExpandScan(const onnx::NodeProto& node, const Values& inputs, Scope& scope);
  // Runs a scan's body once for each slice of what it scans. Returns the final states and what was
  // collected, under the names of `named`, or nothing if its rounds can't be unrolled.
  std::optional<Values> ScanRounds(const onnx::NodeProto& node, const onnx::NodeProto& named,
                                   const onnx::GraphProto& body, const Values& given,
                                   const Scope& shared, Scope& scope);
  // A scan of operator set 8 has a batch, and runs its body for each of its samples.
  bool ExpandScanOfBatch(const onnx::NodeProto& node, const onnx::NodeProto& named,
                         const onnx::GraphProto& body, ValueIndex lengths, const Values& given,
                         const Scope& shared, Scope& scope);
  bool ExpandSequenceMap(const onnx::NodeProto& node, const Values& inputs, Scope& scope);
  // Records the reason for AddDeadEnd and returns false.
  bool Refuse(std::string why);
  // Returns the scope shared by all rounds of a loop: the initializers of its body.
  Scope LoopScope(const onnx::NodeProto& node, const onnx::GraphProto& body, const Scope& scope);
  // Expands the body once with these inputs and returns its output values; nullopt if it
  // contradicts itself or exceeds the limit for loops.
  std::optional<Values> ExpandRound(const onnx::GraphProto& body, int64_t round,
                                    const Values& inputs, const Scope& shared);
  // Returns values with the types of what a round makes, for a loop that has no round.
  Values TypesOfRound(const onnx::GraphProto& body, const Values& operands, const Scope& shared);
  // A constant without contents.
  ValueIndex AddTyped(const std::string& name, int32_t type, const Dims& dims, Scope& scope);
  // Returns what a loop without a round collects: nothing, along a new axis of the type of a round.
  // Without that type, it adds a dead end, and returns no value.
  ValueIndex Empty(const onnx::NodeProto& node, size_t output, ValueIndex round, int64_t axis,
                   const Values& reads, Scope& scope);
  // Joins the values that each round made, along a new axis.
  ValueIndex Stack(const onnx::NodeProto& node, int output, const Values& rounds, int64_t axis,
                   Scope& scope);
  // Returns a slice of `value` for each position on the axis, without the axis.
  Values Unstack(const onnx::NodeProto& node, int input, ValueIndex value, int64_t axis,
                 Scope& scope);
  // Binds the outputs of a node to these values.
  void NameOutputs(const onnx::NodeProto& node, const Values& values, Scope& scope);
  ValueIndex AddScalar(const onnx::NodeProto& node, const std::string& name, int32_t type,
                       int64_t number, Scope& scope);
  // Returns the number in a scalar, if known.
  std::optional<int64_t> KnownScalar(ValueIndex value) const;

  // ---- Sequences: sequences.cc -----------------------------------------------------------------

  struct Part {
    ValueIndex value = kNoValue;
    std::optional<int64_t> lost_axis;  // An axis of size 1 that is dropped.
  };
  using Parts = std::vector<Part>;

  // Returns false unless the node is an operator on sequences with known parts.
  bool AddSequenceOperation(const onnx::NodeProto& node, const Values& inputs, Scope& scope);
  bool AddSequenceSplit(const onnx::NodeProto& node, const Values& inputs, Scope& scope);
  bool AddSequenceConstruct(const onnx::NodeProto& node, const Values& inputs, Scope& scope);
  bool AddSequenceChange(const onnx::NodeProto& node, const Values& inputs, Scope& scope);
  bool AddSequencePart(const onnx::NodeProto& node, const Values& inputs, Scope& scope);
  bool AddSequenceLength(const onnx::NodeProto& node, const Values& inputs, Scope& scope);
  bool AddSequenceConcat(const onnx::NodeProto& node, const Values& inputs, Scope& scope);
  bool AddOptional(const onnx::NodeProto& node, const Values& inputs, Scope& scope);
  const Parts* PartsOf(ValueIndex value) const;
  // Makes the node's output a sequence of these parts.
  bool AddSequence(const onnx::NodeProto& node, Parts parts, Scope& scope);
  // Returns the value of a part without its dropped axis.
  ValueIndex ValueOfPart(const onnx::NodeProto& node, const Part& part, size_t position,
                         Scope& scope);
  void AddPart(const onnx::NodeProto& node, const Part& part, Scope& scope);

  Model::Impl& model_;
  const BoundDims& bound_;
  const std::string& file_;
  BatchFollower* const follower_;  // Null for the file's own batch.
  const ModelFunctions functions_;
  ModelBuilder builder_;
  std::unordered_set<std::string> in_cycle_;  // Results of nodes that depend on each other.
  DeadEnds dead_ends_;
  std::unordered_map<ValueIndex, Parts> sequences_;
  int64_t part_bytes_ = 0;
  size_t made_bytes_ = 0;
  size_t unrolled_ = 0;  // Operations in unrolled rounds.
  size_t unrolled_name_bytes_ = 0;
  std::string why_not_;  // Why the current node can't be expanded.
  bool is_too_large_ = false;
};

}  // namespace ckplan
