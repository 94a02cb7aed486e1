// The whole training step as one graph of operations: forward, loss and backward alike.
//
//   conv : reads x, w   writes c         relu_grad : reads dr, r   writes dc
//   relu : reads c      writes r         conv_grad : reads dc, x   writes dw (a parameter gradient)
//
// A TensorGraph has only the forward computation, and fixed rules define its backward pass. A joint
// graph has no such rules, so it can describe other sources: graphs of frameworks, tied weights,
// decomposed backward passes, published instances. A plan is a sequence of runs of operations
// (lib/problem/schedule/replay.h defines what each of them needs). Every forward graph can be
// expanded into a joint graph (lib/problem/schedule/expand.h).
//
// The ids of the operations are their positions in the list, which is the graph's own order.
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

// In plans, timelines and labels, an operation takes the place of a node of a TensorGraph, and a
// value that of a tensor.
using OpId = NodeId;
using ValueId = TensorId;

enum class ValueKind : uint8_t {
  kValue,              // Counted in the peak from the run that makes it to its last read.
  kConstant,           // There all the time, or counted elsewhere: inputs, and parameters of files
                       // that do not tell them apart.
  kParameterGradient,  // A result that is counted with the constants.
  // A gradient of parameters that is a result and counts in the peak as a kValue does.
  kArrivingGradient,
  kParameter,  // There all the time: parameters.
};
enum class Phase : uint8_t { kForward, kBackward };

// "value", "constant", "parameter_gradient", "arriving_gradient", "parameter"
std::string_view NameOf(ValueKind kind);
std::string_view NameOf(Phase phase);  // "forward", "backward"

struct Value {
  int64_t file_id = -1;  // The number that files use for it; unique.
  std::string name;
  Bytes bytes;
  ValueKind kind = ValueKind::kValue;
  // The value whose memory this one shares, if it has none of its own. That memory lives as long as
  // any of the values in it.
  ValueId alias_of;

  // Derived by JointGraph::Create.
  OpId producer;              // None if the value is given from outside.
  std::vector<OpId> readers;  // Ascending, each once.
  ValueId storage;            // The value itself, or the end of its chain of aliases.
  bool is_result = false;     // A result of the graph: its last version lives to the end.

  bool operator==(const Value&) const = default;
};

// `write` may take over the memory of `read` if both are equally large and `read` dies at this run.
struct InPlaceWrite {
  ValueId write;
  ValueId read;
  bool operator==(const InPlaceWrite&) const = default;
};

struct Operation {
  int64_t file_id = -1;  // The number that files and plans use for it; unique.
  std::string name;
  std::string op;      // Its type: "aten.convolution.default". May be empty.
  std::string module;  // The path of the module that it belongs to. May be empty.
  Phase phase = Phase::kForward;
  std::vector<ValueId> reads;
  std::vector<ValueId> writes;
  Cost cost;
  Bytes workspace;  // Memory while it runs, in addition to reads and writes.
  bool may_repeat = true;
  std::vector<InPlaceWrite> in_place;  // In the order in which they are tried.

  bool operator==(const Operation&) const = default;
};

struct JointGraphParts {
  std::string name;
  IdVector<ValueId, Value> values;
  IdVector<OpId, Operation> ops;
  std::vector<ValueId> results;
  // The parameters' gradients, wherever they are; nothing if only the values of the kinds for
  // gradients are known.
  std::optional<std::vector<OptimizedTensors>> optimized_tensors = std::nullopt;
};

// Invariants: an operation reads only values that are given from outside or made by an earlier
// operation; a value has at most one producer; no sum of sizes or of costs over the whole graph
// exceeds kMaxTotalBytes or kMaxTotalCost.
class JointGraph {
 public:
  // Returns kInvalidInput for a value that is read before it is made or is made twice; a read,
  // write or alias that does not exist; an alias whose producer does not read its base; a negative
  // size or cost; and totals beyond the limits. The message lists all faults, not only the first.
  static Result<JointGraph> Create(JointGraphParts parts);

  const std::string& name() const { return name_; }
  const IdVector<ValueId, Value>& values() const { return values_; }
  const IdVector<OpId, Operation>& ops() const { return ops_; }
  const Value& value(ValueId id) const { return values_[id]; }
  const Operation& op(OpId id) const { return ops_[id]; }
  // In the order of the parts, followed by the arriving gradients that are not among them.
  const std::vector<ValueId>& results() const { return results_; }
  const std::optional<std::vector<OptimizedTensors>>& optimized_tensors() const {
    return optimized_tensors_;
  }

  // Whether every plan must run the operation: it makes a result or a parameter gradient.
  bool is_needed(OpId id) const { return is_needed_[id]; }
  // The bytes of the value that count in the peak: zero for aliases, for values given from outside,
  // for constants and for gradients that are counted with them.
  Bytes counted_bytes(ValueId id) const;
  Cost cost() const { return cost_; }  // The cost of all operations, each run once.

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

// Returns the parts again, to make a changed graph from.
JointGraphParts PartsOf(const JointGraph& graph);

// Returns the graph with the sizes of values and workspaces rounded up to multiples of the
// alignment, which is from 1 to kMaxTotalBytes. Returns kInvalidInput if they overflow.
Result<JointGraph> AlignSizes(const JointGraph& graph, int64_t alignment_bytes);

// Returns the graph with the gradients of parameters counted in the peak, each from the run that
// makes it to the end, instead of with the constants. Frameworks that release gradients between
// steps behave so (zero_grad(set_to_none=True) of PyTorch).
JointGraph WithArrivingGradients(const JointGraph& graph);

// Whether values of this kind count in the peak if an operation makes them.
bool IsCountedInPeak(ValueKind kind);

// Returns the operations in the graph's own order, each once.
std::vector<OpId> OwnOrder(const JointGraph& graph);

// Returns the memory of the values that do not count in the peak, without aliases. Values that no
// operation makes, and other constants, are inputs unless the graph calls them parameters.
ConstantMemory ConstantsOf(const JointGraph& graph);

// Returns the gradients of parameters, wherever they are counted: what optimizers keep state for.
Optimized OptimizedOf(const JointGraph& graph);

// The overhead of running only what some result needs, each once: no plan of the graph has less. It
// is zero or, where there are operations that nothing needs, below.
Cost MinOverhead(const JointGraph& graph);

// Returns the cost of running each operation of the phase once.
Cost PhaseCost(const JointGraph& graph, Phase phase);

// The name of a node for messages.

// Returns the node's name, or that of its first output, or else "node 7" by its number in files.
std::string ShownName(const TensorGraph& graph, NodeId id);
// Returns the operation's name in the same manner: "operation 7".
std::string ShownName(const JointGraph& graph, OpId id);

// Decides by the type of an operation whether it may run twice, for joint graphs that do not say.

// Returns false for operations whose second run may give another result or act twice: routers and
// searches (TopK, sort, argmax), which may choose differently if values differ in the last bit;
// fused attention, whose saved statistics and random state belong to one run; random numbers; and
// communication. Types are those of PyTorch ("aten.topk.default") and of ONNX ("TopK"), with or
// without the name of their library and of their overload.
bool MayRepeatByType(std::string_view type);

// Returns whether operations of that type draw random numbers.
bool IsRandomByType(std::string_view type);

}  // namespace ckplan
