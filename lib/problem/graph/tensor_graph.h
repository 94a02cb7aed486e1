// A training step as the planner sees it: nodes with costs, and tensors with sizes. It does not
// depend on ONNX: lib/files/model creates it from a model, lib/files/emit from a graph file.
//
//        input x          node "conv"        tensor c         node "relu"       tensor r
//      (kind kInput) ───▶ cost 40, ─────▶ (kActivation) ───▶ cost 2,  ─────▶ (kActivation)
//                         backward reads x                   in place of c,
//                                                            backward reads r
//
// Views (Reshape, Flatten, ...) are not nodes: their result is their input's tensor. Parameters are
// not tensors of the graph, since they are constant during a step and counted separately.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"

namespace ckplan {

// ---- The tensors for which an optimizer keeps state ----
//
// Some optimizers round the state of each tensor, or depend on its type, so the sum of the bytes is
// not enough (lib/planning/plan/optimizer_state.h).
//
// Tensors of the same size and type.
struct OptimizedTensors {
  int64_t elements = 0;       // Per tensor.
  int64_t element_bytes = 0;  // The bytes of an element of the parameter and its gradient.
  int64_t count = 0;          // The number of tensors.

  bool operator==(const OptimizedTensors&) const = default;
};

// The trained parameters, in total and one by one.
struct Optimized {
  Bytes bytes;  // The sum of the gradients' sizes.
  // Empty if only the sum is known, such as from a graph file without these tensors.
  std::vector<OptimizedTensors> tensors;
  // True if a graph file does not say what is trained; `bytes` is then 0.
  bool is_unknown = false;

  bool operator==(const Optimized&) const = default;
};

// The largest element is a complex number of two float64.
inline constexpr int64_t kMaxElementBytes = 16;

// Returns the sum of the tensors' sizes, which must not overflow.
Bytes SizeOf(const std::vector<OptimizedTensors>& tensors);

// Merges equal sizes and types, sorts by type and size, and drops empty tensors.
std::vector<OptimizedTensors> Merged(std::vector<OptimizedTensors> tensors);

struct Parameter {
  enum class Kind : uint8_t {
    kTrained,  // Has a gradient and optimizer state.
    kFrozen,   // A parameter of the original program that is not trained.
    kBuffer,   // Not a parameter: running statistics, masks, quantized weights.
  };
  std::string name;
  Kind kind = Kind::kTrained;
  Bytes bytes;
  int64_t elements = 0;
  int64_t rows = 1;             // The size of the first dimension; 1 for a scalar.
  std::vector<NodeId> readers;  // Ascending and unique.

  bool operator==(const Parameter&) const = default;
  // The parameter must not be empty.
  OptimizedTensors AsOptimized() const { return {elements, bytes.count() / elements, 1}; }
};

enum class TensorKind {
  kInput,       // An input of the step; always in memory and counted as a constant.
  kActivation,  // The output of a node.
  kStatistic,   // Saved only for backward: batch norm means, pooling indices, dropout masks.
};

struct Tensor {
  int64_t file_id = -1;  // The id in files and plans; unique.
  std::string name;
  Bytes bytes;
  TensorKind kind = TensorKind::kActivation;
  bool requires_grad = true;

  // These two are derived by TensorGraph::Create.
  NodeId producer;                // None for inputs.
  std::vector<NodeId> consumers;  // Ascending and unique.

  bool operator==(const Tensor&) const = default;
};

// `output` may reuse the memory of `input` if this node is the last use of `input`.
struct InPlacePair {
  TensorId output;
  TensorId input;
  bool operator==(const InPlacePair&) const = default;
};

struct Node {
  int64_t file_id = -1;  // The id in files and plans; unique.
  std::string name;
  std::string op;
  std::vector<TensorId> inputs;          // In the operation's order; may contain duplicates.
  std::vector<TensorId> outputs;         // Includes statistics.
  std::vector<TensorId> backward_reads;  // The inputs and outputs that backward needs.
  Cost forward_cost;
  Cost backward_cost;
  Bytes forward_workspace;
  Bytes backward_workspace;
  std::vector<InPlacePair> in_place;           // In order of preference.
  std::vector<TensorId> gradient_passthrough;  // Inputs whose gradient equals the output's.
  bool is_random = false;                      // A recomputation must reuse the seed.
  // The numbers of parameters that other nodes train, too. The backward passes of these nodes add
  // to the same gradient, so they must run in reverse graph order for the sum to be bit-identical.
  // Only models provide this, not graph files.
  std::vector<int32_t> shared_parameters;
  // The bytes of parameter gradients that this node's backward is the first to write, in reverse
  // graph order. Only models provide this.
  Bytes parameter_gradients;

  bool operator==(const Node&) const = default;
};

// Memory that a step holds from beginning to end, regardless of the plan.
struct ConstantMemory {
  Bytes parameters;
  Bytes parameter_gradients;
  Bytes inputs;
  // If the parameters are sharded (lib/problem/parallel/division.h): the bytes of gathered
  // parameters and gradients at a time.
  Bytes unsharded;

  bool operator==(const ConstantMemory&) const = default;
};

// How backward is split into steps.
enum class BackwardForm : uint8_t {
  kByNode,   // A node's step computes the gradients of all its inputs, as autograd engines do.
  kByInput,  // A node's step computes the gradients of its outputs, from all their readers.
};

// The input of TensorGraph::Create. Nodes may come in any order.
struct TensorGraphParts {
  std::string name;
  IdVector<TensorId, Tensor> tensors;
  IdVector<NodeId, Node> nodes;
  std::vector<TensorId> outputs;  // The model's outputs, whose gradients the loss creates.
  Bytes parameters;
  Bytes parameter_gradients;
  // The bytes of the gradients with optimizer state; by default, all parameter gradients.
  std::optional<Bytes> optimized = std::nullopt;
  Bytes unsharded = Bytes(0);
  // The number of micro-batches in flight at once, each with its own inputs
  // (lib/problem/parallel/division.h).
  int64_t micro_batches = 1;
  // The tensors of `optimized`; empty if only their sum is known.
  std::vector<OptimizedTensors> optimized_tensors = {};
  // True if the source does not say what is trained; then the gradients have no bytes.
  bool is_training_unknown = false;
  // With kByInput, backward_reads may be any tensors; see WithBackwardByInput.
  BackwardForm backward = BackwardForm::kByNode;

  bool operator==(const TensorGraphParts&) const = default;
};

// Invariants: node ids are a topological order; every tensor except inputs has one producer; sums
// of sizes and costs over the graph, and small multiples of them, do not overflow.
class TensorGraph {
 public:
  // Sorts the nodes topologically, without reordering a sorted list, and derives producers and
  // consumers. kInvalidInput, listing all faults: a cycle, a dangling or doubly produced tensor, a
  // negative size or cost, a backward read that is not an input or output of its node, or totals
  // beyond the limits below.
  static Result<TensorGraph> Create(TensorGraphParts parts);

  const std::string& name() const { return name_; }
  const IdVector<TensorId, Tensor>& tensors() const { return tensors_; }
  const IdVector<NodeId, Node>& nodes() const { return nodes_; }
  const Tensor& tensor(TensorId id) const { return tensors_[id]; }
  const Node& node(NodeId id) const { return nodes_[id]; }
  const std::vector<TensorId>& outputs() const { return outputs_; }
  const ConstantMemory& constants() const { return constants_; }
  // The gradients for which the optimizer keeps state.
  const Optimized& optimized() const { return optimized_; }
  // The number of micro-batches in flight at once. A schedule covers one of them; memory also holds
  // the tensors that each other micro-batch keeps for backward. constants() includes all inputs.
  int64_t micro_batches() const { return micro_batches_; }
  BackwardForm backward() const { return backward_; }

  bool is_input(TensorId id) const { return tensors_[id].kind == TensorKind::kInput; }
  Cost forward_cost() const { return forward_cost_; }    // The sum over all nodes.
  Cost backward_cost() const { return backward_cost_; }  // The sum over all nodes.

  bool operator==(const TensorGraph&) const = default;

 private:
  TensorGraph() = default;

  std::string name_;
  IdVector<TensorId, Tensor> tensors_;
  IdVector<NodeId, Node> nodes_;
  std::vector<TensorId> outputs_;
  ConstantMemory constants_;
  Optimized optimized_;
  int64_t micro_batches_ = 1;
  BackwardForm backward_ = BackwardForm::kByNode;
  Cost forward_cost_;
  Cost backward_cost_;
};

// The limits are far beyond any machine (64 PiB; 52 days in nanoseconds), but low enough that
// solvers can add and double such totals without overflow.
inline constexpr Bytes kMaxTotalBytes{int64_t{1} << 56};
inline constexpr Cost kMaxTotalCost{int64_t{1} << 52};

// Rounds each tensor and workspace up to a multiple of `alignment_bytes` (PyTorch's caching
// allocator: 512; cudaMalloc: 256). kInvalidInput: a size overflows.
Result<TensorGraph> AlignSizes(const TensorGraph& graph, int64_t alignment_bytes);

// Returns the same graph with backward steps by input, as Kusumoto et al. 2019 count memory
// (section 3). The step of a node v computes
//   - the gradient of each output of v, in one buffer to which each node h that reads the output
//     adds its part in place, so there are no temporary or shared buffers;
//   - the gradients of v's parameters, and v's part of the gradients of the graph's inputs.
// So it reads the backward reads of v and of each h. The gradient of h lives until the steps of the
// nodes that produce h's inputs are done.
TensorGraph WithBackwardByInput(const TensorGraph& graph);

// Returns the parts, for building a modified graph.
TensorGraphParts PartsOf(const TensorGraph& graph);

// Returns the bytes of all tensors that backward reads, including the model's inputs. PyTorch users
// know this as the sum of saved tensors. The peak also counts gradients and tensors that backward
// does not read.
Bytes SavedForBackward(const TensorGraph& graph);

// Returns the graph of inference: the same nodes, without gradients and backward. Statistics that
// nodes save only for their backward have size 0. A training step of this graph without
// recomputation is an inference, so functions that measure schedules can measure it.
// O(nodes + edges).
TensorGraph PredictionGraph(const TensorGraph& graph);

}  // namespace ckplan
