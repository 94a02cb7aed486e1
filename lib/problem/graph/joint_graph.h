// The whole training step as one graph of operations: forward, loss and backward.
//
//   conv : reads x, w   writes c         relu_grad : reads dr, r   writes dc
//   relu : reads c      writes r         conv_grad : reads dc, x   writes dw (a parameter gradient)
//
// A TensorGraph has only the forward computation; fixed rules define its backward pass. A joint
// graph has an explicit backward pass, so it can also describe graphs of frameworks, tied weights,
// decomposed backward passes and published instances. A plan is a sequence of runs of operations;
// lib/problem/schedule/replay.h defines what each run needs. lib/problem/schedule/expand.h expands
// a forward graph into a joint graph.
//
// An operation's id is its position in the list, which is the graph's own order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

// Plans, timelines and labels treat an operation as a node and a value as a tensor.
using OpId = NodeId;
using ValueId = TensorId;

enum class ValueKind : uint8_t {
  kValue,              // Counts in the peak from the run that produces it to its last read.
  kConstant,           // Always in memory: inputs, and parameters in files that do not mark them.
  kParameterGradient,  // A result that counts as a constant.
  // A parameter gradient that is a result and counts in the peak like a kValue.
  kArrivingGradient,
  kParameter,  // Always in memory.
};
enum class Phase : uint8_t { kForward, kBackward };

// For example "parameter_gradient".
std::string_view NameOf(ValueKind kind);
std::string_view NameOf(Phase phase);  // "forward", "backward"

struct Value {
  int64_t file_id = -1;  // The id in files; unique.
  std::string name;
  Bytes bytes;
  ValueKind kind = ValueKind::kValue;
  // The value whose memory this one shares, if any. That memory lives as long as any value in it.
  ValueId alias_of;

  // Derived by JointGraph::Create.
  OpId producer;              // None for inputs.
  std::vector<OpId> readers;  // Ascending and unique.
  ValueId storage;            // The value itself, or the end of its chain of aliases.
  bool is_result = false;     // A result of the graph, whose last version stays to the end.

  bool operator==(const Value&) const = default;
};

// `write` may reuse the memory of `read` if they have the same size and this run is the last to
// read `read`.
struct InPlaceWrite {
  ValueId write;
  ValueId read;
  bool operator==(const InPlaceWrite&) const = default;
};

struct Operation {
  int64_t file_id = -1;  // The id in files and plans; unique.
  std::string name;
  std::string op;      // The type, such as "aten.convolution.default"; may be empty.
  std::string module;  // The path of the module that contains it; may be empty.
  Phase phase = Phase::kForward;
  std::vector<ValueId> reads;
  std::vector<ValueId> writes;
  Cost cost;
  Bytes workspace;  // Memory while it runs, in addition to reads and writes.
  bool may_repeat = true;
  std::vector<InPlaceWrite> in_place;  // In order of preference.

  bool operator==(const Operation&) const = default;
};

struct JointGraphParts {
  std::string name;
  IdVector<ValueId, Value> values;
  IdVector<OpId, Operation> ops;
  std::vector<ValueId> results;
  // The gradients of all trained parameters; empty if only the values of gradient kinds are known.
  std::optional<std::vector<OptimizedTensors>> optimized_tensors = std::nullopt;
};

// Invariants: an operation reads only inputs and values of earlier operations; a value has at most
// one producer; sums of sizes and costs over the graph do not exceed kMaxTotalBytes and
// kMaxTotalCost.
class JointGraph {
 public:
  // kInvalidInput, listing all faults: a value that is read before it is produced or that is
  // produced twice; a read, write or alias that does not exist; an alias whose producer does not
  // read its base; a negative size or cost; totals beyond the limits.
  static Result<JointGraph> Create(JointGraphParts parts);

  const std::string& name() const { return name_; }
  const IdVector<ValueId, Value>& values() const { return values_; }
  const IdVector<OpId, Operation>& ops() const { return ops_; }
  const Value& value(ValueId id) const { return values_[id]; }
  const Operation& op(OpId id) const { return ops_[id]; }
  // The results of the parts, followed by the other arriving gradients.
  const std::vector<ValueId>& results() const { return results_; }
  const std::optional<std::vector<OptimizedTensors>>& optimized_tensors() const {
    return optimized_tensors_;
  }

  // Returns true if every plan must run the operation, as it produces a result or a parameter
  // gradient.
  bool is_needed(OpId id) const { return is_needed_[id]; }
  // Returns the bytes that the value adds to the peak: zero for aliases, inputs, constants, and
  // gradients that count as constants.
  Bytes counted_bytes(ValueId id) const;
  Cost cost() const { return cost_; }  // The cost of running each operation once.

  bool operator==(const JointGraph&) const = default;

 private:
  JointGraph() = default;

  std::string name_;
  IdVector<ValueId, Value> values_;
  IdVector<OpId, Operation> ops_;
  std::vector<ValueId> results_;
  std::optional<std::vector<OptimizedTensors>> optimized_tensors_;
  IdVector<OpId, bool> is_needed_;
  Cost cost_;
};

// Returns the parts, for building a modified graph.
JointGraphParts PartsOf(const JointGraph& graph);

// Rounds the sizes of values and workspaces up to multiples of the alignment, which is from 1 to
// kMaxTotalBytes. kInvalidInput: a total overflows.
Result<JointGraph> AlignSizes(const JointGraph& graph, int64_t alignment_bytes);

// Counts parameter gradients in the peak, each from the run that produces it to the end, instead of
// as constants. This models frameworks that release gradients between steps, such as PyTorch with
// zero_grad(set_to_none=True).
JointGraph WithArrivingGradients(const JointGraph& graph);

// Returns true if values of this kind count in the peak when an operation produces them.
bool IsCountedInPeak(ValueKind kind);

// Returns each operation once, in the graph's own order.
std::vector<OpId> OwnOrder(const JointGraph& graph);

// Returns the memory of the values that do not count in the peak, without aliases. Constants and
// values without a producer are inputs unless the graph marks them as parameters.
ConstantMemory ConstantsOf(const JointGraph& graph);

// Returns the parameter gradients, for which optimizers keep state, however they are counted.
Optimized OptimizedOf(const JointGraph& graph);

// Returns the overhead of running only the operations that results need, each once. No plan has
// less. It is zero, or negative if the graph has operations that nothing needs.
Cost MinOverhead(const JointGraph& graph);

// Returns the cost of running each operation of the phase once.
Cost PhaseCost(const JointGraph& graph, Phase phase);

// ---- Names for messages ----

// Returns the node's name, the name of its first output, or "node 7" with its file_id.
std::string ShownName(const TensorGraph& graph, NodeId id);
// Likewise, or "operation 7".
std::string ShownName(const JointGraph& graph, OpId id);

// ---- Properties by an operation's type, for joint graphs that do not specify them ----

// Returns false for operations that must not run twice, since the second run could give another
// result or have a side effect: routers and searches (TopK, sort, argmax), which may choose
// differently if values differ in the last bit; fused attention, whose saved statistics and random
// state belong to one run; random numbers; and communication. Accepts PyTorch types
// ("aten.topk.default") and ONNX types ("TopK"), with or without library and overload.
bool MayRepeatByType(std::string_view type);

// Returns true if operations of that type draw random numbers.
bool IsRandomByType(std::string_view type);

}  // namespace ckplan
