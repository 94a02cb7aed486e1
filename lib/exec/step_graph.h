// A model as a backend runs it: one OpSpec for each node of its TensorGraph, and beside the graph
// the constants (parameters, masks, tables of sines) with the operators that compute them once.
//
//   initializer W ─▶ Transpose (constant op) ─▶ constant Wt ┐
//                                              tensor x ────┴▶ MatMul (node) ─▶ tensor y
//
// All floats are computed in float32. They are stored so, too, whatever the model's types are; but
// of a model loaded with ActivationType::kBFloat16, those that depend on the batch, and their
// gradients, are stored as bfloat16. The graph's sizes follow.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/graph/tensor_graph.h"
#include "lib/model/model.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

using ConstantId = Id<struct ConstantTag>;

// Where an operand's contents are.
struct Binding {
  TensorId tensor;      // Of the graph; or
  ConstantId constant;  // of the step; or neither: absent, or not read.

  bool is_bound() const { return !tensor.is_none() || !constant.is_none(); }
};

struct StepNode {
  OpSpec spec;
  std::vector<Binding> inputs;    // By position.
  std::vector<TensorId> outputs;  // By position; none where nobody reads it.
  TensorId statistic;             // None where nothing is saved.
  bool is_random = false;
  std::vector<size_t> batch_positions;    // Of the entries of the graph node's `inputs`.
  std::vector<size_t> trained_positions;  // Constants whose gradient is asked for. Ascending.
};

// How a trained value is used for the first time: what a sensible start of it depends on.
enum class ParameterUse { kWeight, kScale, kShift, kEmbedding, kOther };

struct StepConstant {
  std::string name;
  Operand operand;               // Type, shape, and the contents where the loader knows them.
  ConstantId root;               // Itself unless it is a view of another.
  int32_t producer = -1;         // Index into constant_ops; -1: a leaf.
  bool is_leaf_in_file = false;  // An initializer, or a Constant node.
  std::optional<double> fill;    // A leaf that is this number everywhere, in the file.
  bool is_trained = false;       // A leaf whose gradient is computed.
  bool has_gradient = false;     // Lies between a trained leaf and a use of it.
  ParameterUse use = ParameterUse::kOther;  // Of a trained leaf.
  int64_t fan_in = 1;                       // Of a weight: products summed into one output.
  int64_t index_bound = 0;  // Of integers that index something: they are below it. 0: unknown.
};

struct ConstantOp {
  OpSpec spec;
  std::vector<ConstantId> inputs;  // By position; none where absent.
  std::vector<ConstantId> outputs;
};

struct StepInput {
  std::string name;
  TensorId tensor;
  Operand operand;
  int64_t index_bound = 0;  // As above, of the batch.
};

struct StepGraph {
  TensorGraph graph;  // In the sizes that are really run, without workspaces.
  IdVector<NodeId, StepNode> nodes;
  IdVector<TensorId, Operand> tensors;  // Statistics as bytes of unknown type: see is_float below.
  IdVector<ConstantId, StepConstant> constants;
  std::vector<ConstantOp> constant_ops;  // In the order in which they run.
  std::vector<StepInput> inputs;
  std::vector<std::string> notes;  // What is run otherwise than the file says: other float types.
};

// kUnsupported: tensors of types that the executor does not hold (strings, 8-bit integers, ...),
// all named at once. `lowered` must come from `model` under Autograd::kMinimal.
Result<StepGraph> BuildStepGraph(const Model& model, const ModelGraph& lowered);

}  // namespace ckplan
