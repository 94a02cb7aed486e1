// Reads an ONNX model and lowers it to a TensorGraph. This folder alone sees ONNX and protobuf: the
// headers that others may include, PUBLIC_HEADERS in CMakeLists.txt, are free of them.
//
//   model.onnx ── LoadModel ──▶ Model ── LowerModel ──▶ ModelGraph (TensorGraph + who is who)
//                                                           └── BuildStepGraph ──▶ StepGraph
//
// A Model is the file with functions inlined, dimensions bound, shape arithmetic folded and every
// tensor's type and shape inferred. Weights are never read: external data is not opened, and large
// inline data is skipped while the file is scanned, so a 10 GB model costs what its graph costs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/name_patterns.h"
#include "lib/base/result.h"
#include "lib/cost/cost_model.h"
#include "lib/graph/absent_values.h"
#include "lib/graph/module_calls.h"
#include "lib/graph/parameters.h"
#include "lib/graph/tensor_graph.h"
#include "lib/plan/plan.h"

namespace ckplan {

struct LoadOptions {
  DimSizes dims;             // batch=64
  InputShapes input_shapes;  // x=2,3,64,64
  // Counts every float tensor that depends on the batch at this size. Parameters and other
  // constants keep the model's types.
  ActivationType activation_type = ActivationType::kOfModel;
  NamePatterns freeze;  // Parameters that are not trained, by name.
  // If set, only this model is loaded. It is compared before dimensions are bound, since another
  // model may have none of that name.
  const ModelIdentity* planned = nullptr;
};

class Model {
 public:
  // Holds the protobuf message; defined in model_impl.h, which only lib/model includes.
  struct Impl;
  explicit Model(std::unique_ptr<Impl> impl);
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  const Impl& impl() const { return *impl_; }
  const ModelIdentity& identity() const;
  // The sizes of symbolic dimensions: those asked for, and those that follow from overridden
  // shapes.
  const DimSizes& dims() const;
  // Remarks for the user that need no action, such as folded BatchNormalization.
  const std::vector<std::string>& warnings() const;

 private:
  std::unique_ptr<Impl> impl_;
};

// kIo: the file cannot be read. kInvalidInput: the file is not ONNX or is damaged, sizes overflow,
// or a shape stays unknown (the message names the node, its operator and what was known). kUsage:
// symbolic dimensions without a size (the message names all of them; the remedy would bind them), a
// dimension, input or parameter that the model does not have, or a size below 1. kUnsupported:
// control flow that cannot be folded. kCheckFailed: it is not the model that was planned.
Result<Model> LoadModel(const std::string& path, const LoadOptions& options);

struct LowerOptions {
  Autograd autograd = Autograd::kMinimal;
  CostModel cost;
  bool lists_parameters = false;  // Whether ModelGraph::parameters is wanted.
};

// What a node of the file has become.
enum class NodeRole {
  kNode,  // A node of the graph: `node` says which.
  kView,  // Its output has the memory of its input.
  // Folded, or computed from parameters and constants alone: it runs once, before the steps.
  kConstant,
};

struct ModelNodeRole {
  NodeRole role = NodeRole::kConstant;
  NodeId node;  // Set for kNode alone.
};

struct ModelGraph {
  TensorGraph graph;
  // One for each node of the file's main graph, in the file's order. All nodes that come from one
  // inlined function call share the row of that call: if any of them is a node of the graph, the
  // row is kNode with the first of them.
  std::vector<ModelNodeRole> roles;
  // In addition to the Model's own: operators that are not known.
  std::vector<std::string> warnings;
  // The tensor of each value and the node of each operation of Model::Impl; invalid ids for what is
  // not in the graph. A view has the tensor whose memory it uses.
  std::vector<TensorId> tensor_of_value;
  std::vector<NodeId> node_of_operation;
  ModuleCalls modules;  // Empty if the file names none.
  // The values of Model::Impl, in its order, that are no tensors of the graph.
  std::vector<AbsentValue> absent_values;
  // In the order of Model::Impl, if they were asked for. Their bytes add up to the graph's.
  std::vector<Parameter> parameters;
};

Result<ModelGraph> LowerModel(const Model& model, const LowerOptions& options);

}  // namespace ckplan
