// Reads an ONNX model and lowers it to a TensorGraph. Only this folder uses ONNX and protobuf; the
// headers for others (PUBLIC_HEADERS in CMakeLists.txt) do not.
//
//   model.onnx ── LoadModel ──▶ Model ── LowerModel ──▶ ModelGraph (TensorGraph + mappings)
//                                                           └── BuildStepGraph ──▶ StepGraph
//
// A Model is the file with functions inlined, dimensions bound, shape arithmetic folded and every
// tensor's type and shape inferred. Weights are never read: external data is not opened, and large
// inline data is skipped, so a 10 GB model costs no more than its graph.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/base/name_patterns.h"
#include "lib/base/result.h"
#include "lib/planning/plan/model_variant.h"
#include "lib/problem/cost/cost_model.h"
#include "lib/problem/graph/origins.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

struct LoadOptions {
  DimSizes dims;             // For example batch=64.
  InputShapes input_shapes;  // For example x=2,3,64,64.
  // If set, every float tensor that depends on the batch has this type's size. Parameters and other
  // constants keep the model's types.
  ActivationType activation_type = ActivationType::kOfModel;
  NamePatterns freeze;  // Names of parameters that are not trained.
  // If set, only this model is loaded. It is compared before dimensions are bound, because another
  // model may lack the named ones.
  const ModelIdentity* planned = nullptr;
  std::set<std::string> optional_dims = {};  // Names that a model may lack: used_settings.h.
  int64_t batch = 0;                         // Replaces a fixed batch size; 0: keeps it.
  FusedOperators fused = FusedOperators::kNone;
  Rounding rounding = Rounding::kStraightThrough;
  RestoredOperators restored = RestoredOperators::kNone;
  Autograd autograd = Autograd::kMinimal;  // kMinimal excludes PyTorch-only operators.
  // See PlanRequest.
  NamePatterns outputs = {};
  NamePatterns weights = {};
  std::vector<std::string> set_inputs = {};
  std::vector<std::string> op_shapes = {};
};

class Model {
 public:
  // Holds the protobuf message; defined in model_impl.h, which only lib/files/model includes.
  struct Impl;
  explicit Model(std::unique_ptr<Impl> impl);
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  const Impl& impl() const { return *impl_; }
  const ModelIdentity& identity() const;
  // Sizes of symbolic dimensions: the requested ones, and those that follow from overridden shapes.
  const DimSizes& dims() const;
  // The file's fixed batch size: the first dimension of all inputs, if it is a number. nullopt if
  // it is open or was overridden.
  std::optional<int64_t> constant_batch() const;
  // Warnings that need no action, such as folded BatchNormalization.
  const std::vector<std::string>& warnings() const;
  // The operations that several file operators were combined into (LoadOptions::restored, and
  // FusedOperators::kCaptured).
  const std::vector<RestoredOperation>& restored() const;

 private:
  std::unique_ptr<Impl> impl_;
};

// Loads a model. Fails with kIo if the file can't be read; kInvalidInput if it is not ONNX or is
// damaged, sizes overflow, or a shape is unknown (the message names the node, its operator and the
// known sizes); kUsage for open dimensions (the message lists them and the remedy binds them), for
// a dimension, input or parameter that the model lacks, for a negative size or one that contradicts
// others or makes all outputs empty, and for a batch that the file leaves open; kUnsupported for
// control flow that can't be folded and nodes that can't use the batch; kCheckFailed if it is not
// the planned model.
Result<Model> LoadModel(const std::string& path, const LoadOptions& options);

struct LowerOptions {
  Autograd autograd = Autograd::kMinimal;
  CostModel cost;
  std::string workspaces;         // The path of a file of workspaces, or empty.
  bool lists_parameters = false;  // Fill ModelGraph::parameters.
};

struct ModelGraph {
  TensorGraph graph;
  // One per node of the file's main graph, in file order. All nodes from one inlined call share the
  // call's row: if any is a node of the graph, the row is kNode with the first one.
  std::vector<ModelNodeRole> roles;
  // Warnings about unknown operators, in addition to the Model's.
  std::vector<std::string> warnings;
  // The tensor of each value and the node of each operation of Model::Impl; invalid ids for those
  // not in the graph. A view has the tensor whose memory it uses.
  std::vector<TensorId> tensor_of_value;
  std::vector<NodeId> node_of_operation;
  ModuleCalls modules;  // Empty if the file has none.
  // The values of Model::Impl, in its order, that are not tensors of the graph.
  std::vector<AbsentValue> absent_values;
  // In the order of Model::Impl, if requested. Their bytes add up to the graph's.
  std::vector<Parameter> parameters;
  std::vector<OpWork> works = {};  // What each node does; empty if its costs were measured.
};

Result<ModelGraph> LowerModel(const Model& model, const LowerOptions& options);

// Settings of a file for several models (ckplan.toml). A model ignores those that it lacks.
//
// LoadOptions::optional_dims has the names of such settings: "N" for a dimension, "mask=" for a set
// input, "acme::Norm=" for a described operator. A plan stores only those that its model has.

// Returns the texts whose input or operator is in the model's file.
std::vector<std::string> UsedSetInputs(const Model& model, const std::vector<std::string>& texts);
std::vector<std::string> UsedOpShapes(const Model& model, const std::vector<std::string>& texts);

}  // namespace ckplan
