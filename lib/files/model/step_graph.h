// The training step of a model in detail, for a backend: one OpSpec for each node of its
// TensorGraph and, besides the graph, the constants (parameters, masks, tables of sines) with the
// operators that compute them once.
//
//   initializer W ─▶ Transpose (constant op) ─▶ constant Wt ┐
//                                              tensor x ────┴▶ MatMul (node) ─▶ tensor y
//
// All floats are computed and stored in float32, whatever the model's types are, with one
// exception: in models loaded with ActivationType::kBFloat16, floats that depend on the batch, and
// their gradients, are stored as bfloat16. The graph's sizes are those of the stored types.
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

// The location of an operand's contents.
struct Binding {
  // At most one of these is set; neither is if the operand is absent or not read.
  TensorId tensor;
  ConstantId constant;
};

struct StepNode {
  // What backward may read, and the size of the statistic, are those of the step's autograd.
  OpSpec spec;
  std::vector<Binding> inputs;  // One for each input position.
  // One for each output position; invalid if the output is not read.
  std::vector<TensorId> outputs;
  TensorId statistic;  // Invalid if no statistic is saved.
  bool is_random = false;
  std::vector<size_t> batch_positions;  // For each input of the graph's node: its position here.
  // Positions of constants whose gradient is computed, ascending.
  std::vector<size_t> trained_positions;
};

struct StepConstant {
  std::string name;
  Operand operand;               // Type and shape, and the contents if the loader knows them.
  ConstantId root;               // The constant itself, or the constant of which it is a view.
  int32_t producer = -1;         // Index into constant_ops; -1 for a leaf.
  bool is_leaf_in_file = false;  // An initializer, or a Constant node.
  // Set if the file says that all elements of the leaf equal this number.
  std::optional<double> fill;
  bool is_trained = false;    // It is a leaf, and its gradient is computed.
  bool has_gradient = false;  // It is a trained leaf, or computed from one and used in training.
  UsedAs used;                // The first use of a trained leaf, or of a constant computed from it.
  int64_t index_bound = 0;    // All elements are indices below it; 0 if unknown.
};

struct ConstantOp {
  OpSpec spec;
  // One for each input position; invalid if the input is absent.
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
  // It has the sizes of the stored types, and the workspaces of the graph that it was built from.
  TensorGraph graph;
  Autograd autograd = Autograd::kMinimal;
  IdVector<NodeId, StepNode> nodes;
  IdVector<TensorId, Operand> tensors;  // Statistics are arrays of bytes.
  IdVector<ConstantId, StepConstant> constants;
  std::vector<ConstantOp> constant_ops;  // In the order in which they run.
  std::vector<StepInput> inputs;
  std::vector<std::string> notes;  // How the step's float types differ from the file's.
};

// kUnsupported: tensors of types that the executor cannot hold (strings, 8-bit integers, ...); the
// error's notes name all of them. `lowered` must come from `model` under the same autograd.
Result<StepGraph> BuildStepGraph(const Model& model, const ModelGraph& lowered,
                                 Autograd autograd = Autograd::kMinimal);

}  // namespace ckplan
