// The training step of a model in detail, for a backend: one OpSpec per node of its TensorGraph,
// and the constants outside the graph (parameters, masks, sine tables) with the operators that
// compute them once.
//
//   initializer W ─▶ Transpose (constant op) ─▶ constant Wt ┐
//                                              tensor x ────┴▶ MatMul (node) ─▶ tensor y
//
// All floats are computed and stored as float32, whatever the model's types, with one exception: in
// models loaded with ActivationType::kBFloat16, floats that depend on the batch and their gradients
// are stored as bfloat16. The graph's sizes are those of the stored types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/files/model/model.h"
#include "lib/files/model/parameters.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/ops/autograd.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

using ConstantId = Id<struct ConstantTag>;

// Where an operand's contents are.
struct Binding {
  // At most one is set; neither if the operand is absent or not read.
  TensorId tensor;
  ConstantId constant;
};

struct StepNode {
  // The autograd mode determines what backward reads, and the size of the statistic.
  OpSpec spec;
  std::vector<Binding> inputs;  // One per input position.
  // One per output position; invalid if the output is not read.
  std::vector<TensorId> outputs;
  TensorId statistic;  // Invalid if no statistic is saved.
  bool is_random = false;
  std::vector<size_t> batch_positions;  // For each input of the graph node, its position here.
  // Positions of constants whose gradient is computed, ascending.
  std::vector<size_t> trained_positions;
};

struct StepConstant {
  std::string name;
  Operand operand;               // Type and shape, and the contents if known.
  ConstantId root;               // The constant that it is a view of, or itself.
  int32_t producer = -1;         // Index into constant_ops; -1 for a leaf.
  bool is_leaf_in_file = false;  // An initializer, or a Constant node.
  // Set if the file says that all elements of the leaf equal this number.
  std::optional<double> fill;
  bool is_trained = false;    // A leaf whose gradient is computed.
  bool has_gradient = false;  // A trained leaf, or computed from one and trained.
  UsedAs used;                // The first use of a trained leaf or its results.
  int64_t index_bound = 0;    // All elements are indices below it; 0 if unknown.
};

struct ConstantOp {
  OpSpec spec;
  // One per input position; invalid if the input is absent.
  std::vector<ConstantId> inputs;
  std::vector<ConstantId> outputs;
};

struct StepInput {
  std::string name;
  TensorId tensor;
  Operand operand;
  int64_t index_bound = 0;  // As in StepConstant.
};

struct StepGraph {
  // Has the sizes of the stored types, and the workspaces of the graph that it was built from.
  TensorGraph graph;
  Autograd autograd = Autograd::kMinimal;
  IdVector<NodeId, StepNode> nodes;
  IdVector<TensorId, Operand> tensors;  // Statistics are arrays of bytes.
  IdVector<ConstantId, StepConstant> constants;
  std::vector<ConstantOp> constant_ops;  // In the order in which they run.
  std::vector<StepInput> inputs;
  std::vector<std::string> notes;  // How the step's float types differ from the file's.
};

// Fails with kUnsupported for tensors of types that the executor does not support (strings, 8-bit
// integers, ...); the error's notes list them. `lowered` must come from `model` with the same
// autograd.
Result<StepGraph> BuildStepGraph(const Model& model, const ModelGraph& lowered,
                                 Autograd autograd = Autograd::kMinimal);

}  // namespace ckplan
