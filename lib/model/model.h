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

#include "lib/base/result.h"
#include "lib/cost/cost_model.h"
#include "lib/graph/tensor_graph.h"
#include "lib/plan/plan.h"

namespace ckplan {

struct LoadOptions {
  DimSizes dims;             // batch=64
  InputShapes input_shapes;  // x=2,3,64,64
  // Counts every float tensor that depends on the batch at this size. Parameters and other
  // constants keep the model's types.
  ActivationType activation_type = ActivationType::kOfModel;
};

class Model {
 public:
  struct Impl;  // Holds the protobuf; defined in model_impl.h, for lib/model alone.
  explicit Model(std::unique_ptr<Impl> impl);
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  const Impl& impl() const { return *impl_; }
  const ModelIdentity& identity() const;
  // Symbolic dimensions as bound: those asked for, and those that an overridden input shape gives.
  const DimSizes& dims() const;
  // What people should know but need not act on: folded BatchNormalization.
  const std::vector<std::string>& warnings() const;

 private:
  std::unique_ptr<Impl> impl_;
};

// kIo: the file cannot be read. kInvalidInput: not ONNX, damaged, sizes that overflow, a shape
// that stays unknown (names the node, its operator and what was known). kUsage: open symbolic
// dimensions (all of them; the remedy would bind them), a dimension or input that the
// model does not have, a size below 1. kUnsupported: control flow that cannot be folded.
Result<Model> LoadModel(const std::string& path, const LoadOptions& options);

struct LowerOptions {
  Autograd autograd = Autograd::kMinimal;
  CostModel cost;
};

// What became of a node of the file.
enum class NodeRole {
  kNode,      // A node of the graph: `node` says which.
  kView,      // Its output is its input's tensor.
  kConstant,  // Folded, or computed from parameters and constants alone: runs once, outside.
};

struct ModelNodeRole {
  NodeRole role = NodeRole::kConstant;
  NodeId node;  // kNode alone.
};

struct ModelGraph {
  TensorGraph graph;
  // One for each node of the file's main graph, in the file's order. Nodes that come from one
  // inlined function call share that call's row: kNode if any of them is one, the first.
  std::vector<ModelNodeRole> roles;
  std::vector<std::string> warnings;  // Beyond the Model's own: operators that no one knows.
  // What became of each value and each operation of Model::Impl; none where it is not in the graph.
  // A view has the tensor whose memory it is.
  std::vector<TensorId> tensor_of_value;
  std::vector<NodeId> node_of_operation;
};

Result<ModelGraph> LowerModel(const Model& model, const LowerOptions& options);

}  // namespace ckplan
