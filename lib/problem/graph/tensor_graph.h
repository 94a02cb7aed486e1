// The problem: what one training step computes, how large each tensor is, and what each operation
// costs. It does not depend on ONNX: lib/files/model makes it from a model, lib/files/emit from a
// graph file.
//
//        input x          node "conv"        tensor c         node "relu"       tensor r
//      (kind kInput) ───▶ cost 40, ─────▶ (kActivation) ───▶ cost 2,  ─────▶ (kActivation)
//                         backward reads x                   in place of c,
//                                                            backward reads r
//
// Views (Reshape, Flatten, ...) are not nodes: their result is their input's tensor. Parameters are
// not tensors of the graph: they are constant during a step and counted separately.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"

namespace ckplan {

// The constants of a model one by one. Their sizes and readers decide how they are divided among
// devices, and which of them each stage of a pipeline holds.

// The tensors for whose gradients an optimizer keeps state. Some optimizers round the state of each
// tensor, or depend on its type, so the sum of their bytes is not enough (lib/planning/plan/
// optimizer_state.h).

// Tensors of one size and type.
struct OptimizedTensors {
  int64_t elements = 0;       // The elements of each tensor.
  int64_t element_bytes = 0;  // The bytes of each element, as parameters and gradients have it.
  int64_t count = 0;          // The number of such tensors.

  bool operator==(const OptimizedTensors&) const = default;
};

// What an optimizer keeps state for.
struct Optimized {
  Bytes bytes;  // The sum of the gradients.
  // Empty if only the sum is known, as from a graph file without them.
  std::vector<OptimizedTensors> tensors;
  // Whether a graph file says nothing about what is trained. `bytes` is then 0.
  bool is_unknown = false;

  bool operator==(const Optimized&) const = default;
};

// The largest number of bytes of one element: a complex number of two float64.
inline constexpr int64_t kMaxElementBytes = 16;

// Returns the sum of the tensors' sizes, which must not overflow.
Bytes SizeOf(const std::vector<OptimizedTensors>& tensors);

// Returns the tensors by ascending type and size, each size and type once, without empty tensors.
std::vector<OptimizedTensors> Merged(std::vector<OptimizedTensors> tensors);

struct Parameter {
  enum class Kind : uint8_t {
    kTrained,  // It has a gradient and optimizer state.
    kFrozen,   // A parameter of the original program that is not trained.
    kBuffer,   // State that is not a parameter: running statistics, masks, quantized weights.
  };
  std::string name;
  Kind kind = Kind::kTrained;
  Bytes bytes;
  int64_t elements = 0;
  int64_t rows = 1;             // The size of its first dimension; 1 for a scalar.
  std::vector<NodeId> readers;  // Ascending, each once.

  bool operator==(const Parameter&) const = default;
  // Returns the parameter as a tensor that is optimized, which must not be empty.
  OptimizedTensors AsOptimized() const { return {elements, bytes.count() / elements, 1}; }
};

enum class TensorKind {
  kInput,       // Given from outside: it always exists, and counts as a constant.
  kActivation,  // Produced by a forward node from the batch.
  kStatistic,   // Saved with an activation for backward: batchnorm mean, pooling indices, masks.
};

struct Tensor {
  int64_t file_id = -1;  // The number that files and plans use for it; unique.
  std::string name;
  Bytes bytes;
  TensorKind kind = TensorKind::kActivation;
  bool requires_grad = true;

  // These two are derived by TensorGraph::Create.
  NodeId producer;                // None for inputs.
  std::vector<NodeId> consumers;  // Ascending, each once.

  bool operator==(const Tensor&) const = default;
};

// `output` may be written into the memory of `input` if this node is the last use of `input`.
struct InPlacePair {
  TensorId output;
  TensorId input;
  bool operator==(const InPlacePair&) const = default;
};

struct Node {
  int64_t file_id = -1;  // The number that files and plans use for it; unique.
  std::string name;
  std::string op;
  std::vector<TensorId> inputs;          // As the operation lists them; one may occur twice.
  std::vector<TensorId> outputs;         // These include statistics.
  std::vector<TensorId> backward_reads;  // The inputs and outputs that its backward needs.
  Cost forward_cost;
  Cost backward_cost;
  Bytes forward_workspace;
  Bytes backward_workspace;
  std::vector<InPlacePair> in_place;           // In the order in which they are tried.
  std::vector<TensorId> gradient_passthrough;  // Inputs whose gradient is the output's, unchanged.
  bool is_random = false;                      // A recomputation must replay its seed.
  // Numbers of the parameters that other nodes train, too. The backward passes of these nodes add
  // to one gradient, so they must run in the reverse of the graph's order for the sum to keep its
  // bits. Only models provide this; graph files do not.
  std::vector<int32_t> shared_parameters;
  // Bytes of the parameter gradients that this node's backward is the first to write, in the
  // reverse of the graph's order, among all nodes that train those parameters. Only models provide
  // this.
  Bytes parameter_gradients;

  bool operator==(const Node&) const = default;
};

// Memory that a step holds from beginning to end, under any plan.
struct ConstantMemory {
  Bytes parameters;
  Bytes parameter_gradients;
  Bytes inputs;
  // If devices divide the parameters (lib/problem/parallel/division.h): the bytes that are whole at
  // a time nonetheless.
  Bytes unsharded;

  bool operator==(const ConstantMemory&) const = default;
};

// What one backward step makes.
enum class BackwardForm : uint8_t {
  kByNode,   // A node's step makes the gradients of all its inputs at once, as autograd engines do.
  kByInput,  // A node's step makes the gradients of its own outputs, from all that read them.
};

// The input of TensorGraph::Create. Nodes may come in any order.
struct TensorGraphParts {
  std::string name;
  IdVector<TensorId, Tensor> tensors;
  IdVector<NodeId, Node> nodes;
  std::vector<TensorId> outputs;  // The model's results; the loss creates their gradients.
  Bytes parameters;
  Bytes parameter_gradients;
  // Bytes of the gradients with optimizer state; if unset, all parameter gradients.
  std::optional<Bytes> optimized = std::nullopt;
  Bytes unsharded = Bytes(0);
  // The number of micro-batches in flight at once, each with its own inputs
  // (lib/problem/parallel/division.h).
  int64_t micro_batches = 1;
  // The tensors of `optimized`; empty if only their sum is known.
  std::vector<OptimizedTensors> optimized_tensors = {};
  // Whether nothing says what is trained; there are then no bytes of gradients.
  bool is_training_unknown = false;
  // By input, backward reads may be any tensors; see WithBackwardByInput.
  BackwardForm backward = BackwardForm::kByNode;
};

// Invariants: node ids are a topological order; every tensor except inputs has one producer; no sum
// of sizes or of costs over the whole graph overflows, nor does a small multiple of it.
class TensorGraph {
 public:
  // Sorts the nodes topologically; among ready nodes, the first in `parts` goes first, so a list
  // that is already in order keeps it. Derives producers and consumers. kInvalidInput: a cycle, a
  // dangling or doubly produced tensor, a negative size or cost, a backward read that is not an
  // input or output of its node, or totals beyond the limits below. The message lists all faults,
  // not only the first.
  static Result<TensorGraph> Create(TensorGraphParts parts);

  const std::string& name() const { return name_; }
  const IdVector<TensorId, Tensor>& tensors() const { return tensors_; }
  const IdVector<NodeId, Node>& nodes() const { return nodes_; }
  const Tensor& tensor(TensorId id) const { return tensors_[id]; }
  const Node& node(NodeId id) const { return nodes_[id]; }
  const std::vector<TensorId>& outputs() const { return outputs_; }
  const ConstantMemory& constants() const { return constants_; }
  // Returns the gradients that the optimizer keeps state for.
  const Optimized& optimized() const { return optimized_; }
  // Returns the number of micro-batches in flight at once. A schedule covers one of them; for each
  // of the others, the memory also holds what it keeps for backward. constants() includes the
  // inputs of all.
  int64_t micro_batches() const { return micro_batches_; }
  BackwardForm backward() const { return backward_; }

  bool is_input(TensorId id) const { return tensors_[id].kind == TensorKind::kInput; }
  Cost forward_cost() const { return forward_cost_; }    // The sum over all nodes, each run once.
  Cost backward_cost() const { return backward_cost_; }  // The sum over all nodes, each run once.

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

// Larger totals are refused. The limits are far beyond any machine (64 PiB; 52 days in
// nanoseconds), yet low enough that solvers may add and double such totals without overflow.
inline constexpr Bytes kMaxTotalBytes{int64_t{1} << 56};
inline constexpr Cost kMaxTotalCost{int64_t{1} << 52};

// Returns a copy of the graph with every tensor and workspace rounded up to a multiple of
// `alignment_bytes` (PyTorch's caching allocator: 512; cudaMalloc: 256). kInvalidInput: a size
// overflows.
Result<TensorGraph> AlignSizes(const TensorGraph& graph, int64_t alignment_bytes);

// Returns the same graph with backward steps by input, as Kusumoto et al. 2019 count memory
// (section 3). The step of a node v
//   - makes the gradient of each output of v: it is one buffer, to which every node h that reads
//     the output adds its part in place, so there are neither temporary nor shared buffers;
//   - makes the gradients of v's parameters, and v's part of the gradients of the graph's inputs.
// So it reads what the backward of v reads, and what that of each h reads. The gradient of h lives
// until the nodes that make h's inputs have had their steps.
TensorGraph WithBackwardByInput(const TensorGraph& graph);

// Returns the graph of one micro-batch alone.
TensorGraph OfOneMicroBatch(const TensorGraph& graph);

// Returns the parts of the graph, from which a changed graph can be made (AlignSizes, new costs).
TensorGraphParts PartsOf(const TensorGraph& graph);

// How much a step that keeps everything saves for its backward pass: PyTorch users know it as the
// sum of saved tensors. It differs from the peak, which also counts gradients and tensors that no
// backward reads.

// Returns the bytes of the distinct tensors that some backward reads, including the model's inputs.
Bytes SavedForBackward(const TensorGraph& graph);

// The graph of a prediction: the same operations, run forward only. No tensor has a gradient.
// Statistics that operations save only for their own backward are not made, so they have size 0. A
// training step of this graph without recomputation is a prediction, so everything that measures
// schedules measures predictions, too.

// O(nodes + edges).
TensorGraph PredictionGraph(const TensorGraph& graph);

}  // namespace ckplan
