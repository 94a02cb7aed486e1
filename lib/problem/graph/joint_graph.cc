#include "lib/problem/graph/joint_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/faults.h"
#include "lib/base/stop.h"
#include "lib/base/text.h"
#include "lib/base/units.h"

namespace ckplan {

namespace {

// Collects the faults of the parts, and sets the producers of values.
class Validator {
 public:
  explicit Validator(JointGraphParts* parts) : values_(parts->values), ops_(parts->ops) {}

  Faults Run(const std::vector<ValueId>& results) {
    CheckValues();
    std::set<int64_t> ids;
    for (const OpId id : ops_.ids()) CheckOperation(id, &ids);
    for (const ValueId id : values_.ids()) CheckAlias(id);
    for (const ValueId id : results) {
      if (!Exists(id)) faults_.Add("a result of the graph is not one of its values");
    }
    CheckTotals();
    return std::move(faults_);
  }

 private:
  bool Exists(ValueId id) const {
    return !id.is_none() && static_cast<size_t>(id.index()) < values_.size();
  }

  void CheckValues() {
    std::set<int64_t> ids;
    for (const ValueId id : values_.ids()) {
      Value& value = values_[id];
      value.producer = OpId();
      value.storage = id;
      if (value.bytes < Bytes(0)) {
        faults_.Add("value \"{}\" has {} bytes", value.name, value.bytes.count());
      }
      if (!ids.insert(value.file_id).second) {
        faults_.Add("two values have the id {}; the second is \"{}\"", value.file_id, value.name);
      }
      if (!value.alias_of.is_none() && (!Exists(value.alias_of) || value.alias_of == id)) {
        faults_.Add("value \"{}\" is an alias of a value that does not exist", value.name);
        value.alias_of = ValueId();
      }
    }
  }

  void CheckOperation(OpId id, std::set<int64_t>* ids) {
    PollStop();
    const Operation& op = ops_[id];
    if (!ids->insert(op.file_id).second) {
      faults_.Add("two operations have the id {}; the second is \"{}\"", op.file_id, op.name);
    }
    if (op.cost < Cost(0) || op.workspace < Bytes(0)) {
      faults_.Add("operation \"{}\" has a negative cost or workspace", op.name);
    }
    for (const auto* list : {&op.reads, &op.writes}) {
      if (!std::all_of(list->begin(), list->end(), [&](ValueId v) { return Exists(v); })) {
        faults_.Add("operation \"{}\" refers to a value that does not exist", op.name);
        return;
      }
    }
    for (const ValueId read : op.reads) {
      if (values_[read].producer.is_none()) is_read_early_[read] = true;
      last_reader_[read] = id;
    }
    for (const ValueId write : op.writes) CheckWrite(id, write);
    for (const auto& [write, read] : op.in_place) {
      const bool is_write = Exists(write) && values_[write].producer == id;
      const bool is_read = Exists(read) && last_reader_[read] == id;
      if (!is_write || !is_read) {
        faults_.Add("operation \"{}\" has an in-place pair that is not a write and a read of it",
                    op.name);
      }
    }
  }

  void CheckWrite(OpId id, ValueId write) {
    Value& value = values_[write];
    if (!value.producer.is_none()) {
      faults_.Add("value \"{}\" is made twice, by \"{}\" and by \"{}\"", value.name,
                  ops_[value.producer].name, ops_[id].name);
    }
    if (is_read_early_[write]) {
      faults_.Add("value \"{}\" is read before \"{}\" makes it", value.name, ops_[id].name);
    }
    value.producer = id;
    sees_base_[write] = !value.alias_of.is_none() && last_reader_[value.alias_of] == id;
  }

  // An alias must point to an earlier value, so that chains of aliases end.
  void CheckAlias(ValueId id) {
    Value& value = values_[id];
    if (value.alias_of.is_none()) return;
    const Value& base = values_[value.alias_of];
    if (value.producer.is_none()) {
      if (!base.producer.is_none() || id < value.alias_of) {
        faults_.Add("value \"{}\" is made by no operation, but is in the memory of \"{}\"",
                    value.name, base.name);
      }
      return;
    }
    if (!sees_base_[id]) {
      faults_.Add("value \"{}\" is in the memory of \"{}\", which \"{}\" does not read", value.name,
                  base.name, ops_[value.producer].name);
    }
  }

  void CheckTotals() {
    std::optional<int64_t> bytes = 0;
    std::optional<int64_t> cost = 0;
    const auto add = [](std::optional<int64_t>* total, int64_t amount) {
      if (total->has_value()) *total = CheckedAdd(**total, amount);
    };
    for (const Value& value : values_) add(&bytes, value.bytes.count());
    for (const Operation& op : ops_) {
      add(&bytes, op.workspace.count());
      add(&cost, op.cost.count());
    }
    if (!bytes || *bytes > kMaxTotalBytes.count()) {
      faults_.Add("its values together overflow the limit of {} bytes", kMaxTotalBytes.count());
    }
    if (!cost || *cost > kMaxTotalCost.count()) {
      faults_.Add("its costs together overflow the limit of {}", kMaxTotalCost.count());
    }
  }

  IdVector<ValueId, Value>& values_;
  const IdVector<OpId, Operation>& ops_;
  IdVector<ValueId, bool> is_read_early_{
      values_.size()};  // An operation reads the value before its producer runs.
  IdVector<ValueId, OpId> last_reader_{values_.size()};  // Among the operations visited so far.
  IdVector<ValueId, bool> sees_base_{values_.size()};  // For aliases: the producer reads the base.
  Faults faults_;
};

// Sets each value's storage, the end of its chain of aliases. Bases come before their aliases: in
// the order of operations or, for inputs, in the list of values.
void DeriveStorage(const IdVector<OpId, Operation>& ops, IdVector<ValueId, Value>* values) {
  const auto derive = [&](ValueId id) {
    Value& value = (*values)[id];
    value.storage = value.alias_of.is_none() ? id : (*values)[value.alias_of].storage;
  };
  for (const ValueId id : values->ids()) {
    if ((*values)[id].producer.is_none()) derive(id);
  }
  for (const Operation& op : ops) {
    for (const ValueId write : op.writes) derive(write);
  }
}

}  // namespace

std::string_view NameOf(ValueKind kind) {
  constexpr std::string_view kNames[] = {"value", "constant", "parameter_gradient",
                                         "arriving_gradient", "parameter"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view NameOf(Phase phase) { return phase == Phase::kForward ? "forward" : "backward"; }

Result<JointGraph> JointGraph::Create(JointGraphParts parts) {
  Faults faults = Validator(&parts).Run(parts.results);
  if (!faults.empty()) return std::move(faults).ToError(fmt::format("graph \"{}\"", parts.name));
  DeriveStorage(parts.ops, &parts.values);
  JointGraph graph;
  graph.is_needed_.resize(parts.ops.size());
  for (Value& value : parts.values) {
    value.readers.clear();
    value.is_result = false;
  }
  for (const ValueId result : parts.results) parts.values[result].is_result = true;
  for (const ValueId id : parts.values.ids()) {
    Value& value = parts.values[id];
    if (value.kind != ValueKind::kArrivingGradient || value.is_result) continue;
    value.is_result = true;
    parts.results.push_back(id);
  }
  for (const OpId id : parts.ops.ids()) {
    PollStop();
    const Operation& op = parts.ops[id];
    for (const ValueId read : op.reads) {
      std::vector<OpId>& readers = parts.values[read].readers;
      if (readers.empty() || readers.back() != id) readers.push_back(id);
    }
    for (const ValueId write : op.writes) {
      const Value& value = parts.values[write];
      if (value.is_result || value.kind == ValueKind::kParameterGradient) {
        graph.is_needed_[id] = true;
      }
    }
    graph.cost_ += op.cost;
  }
  graph.name_ = std::move(parts.name);
  graph.values_ = std::move(parts.values);
  graph.ops_ = std::move(parts.ops);
  graph.results_ = std::move(parts.results);
  graph.optimized_tensors_ = std::move(parts.optimized_tensors);
  return graph;
}

Bytes JointGraph::counted_bytes(ValueId id) const {
  const Value& value = values_[id];
  const bool is_counted =
      IsCountedInPeak(value.kind) && !value.producer.is_none() && value.alias_of.is_none();
  return is_counted ? value.bytes : Bytes(0);
}

JointGraphParts PartsOf(const JointGraph& graph) {
  return {graph.name(), graph.values(), graph.ops(), graph.results(), graph.optimized_tensors()};
}

Result<JointGraph> AlignSizes(const JointGraph& graph, int64_t alignment_bytes) {
  CKPLAN_CHECK(alignment_bytes >= 1 && alignment_bytes <= kMaxTotalBytes.count(),
               "the alignment is positive and at most kMaxTotalBytes");
  JointGraphParts parts = PartsOf(graph);
  const auto align = [&](Bytes* bytes) {
    *bytes = Bytes(RoundUp(bytes->count(), alignment_bytes));
  };
  for (Value& value : parts.values) align(&value.bytes);
  for (Operation& op : parts.ops) align(&op.workspace);
  return JointGraph::Create(std::move(parts));
}

JointGraph WithArrivingGradients(const JointGraph& graph) {
  JointGraphParts parts = PartsOf(graph);
  for (Value& value : parts.values) {
    const bool is_made = !value.producer.is_none();
    if (is_made && value.kind == ValueKind::kParameterGradient) {
      value.kind = ValueKind::kArrivingGradient;
    }
  }
  return JointGraph::Create(std::move(parts)).value();
}

bool IsCountedInPeak(ValueKind kind) {
  return kind == ValueKind::kValue || kind == ValueKind::kArrivingGradient;
}

std::vector<OpId> OwnOrder(const JointGraph& graph) {
  std::vector<OpId> order;
  order.reserve(graph.ops().size());
  for (const OpId id : graph.ops().ids()) order.push_back(id);
  return order;
}

ConstantMemory ConstantsOf(const JointGraph& graph) {
  ConstantMemory constants;
  for (const Value& value : graph.values()) {
    if (!value.alias_of.is_none()) continue;
    if (value.kind == ValueKind::kParameterGradient) {
      constants.parameter_gradients += value.bytes;
    } else if (value.kind == ValueKind::kParameter) {
      constants.parameters += value.bytes;
    } else if (value.kind == ValueKind::kConstant || value.producer.is_none()) {
      constants.inputs += value.bytes;
    }
  }
  return constants;
}

Optimized OptimizedOf(const JointGraph& graph) {
  Optimized optimized;
  for (const Value& value : graph.values()) {
    const bool is_gradient =
        value.kind == ValueKind::kParameterGradient || value.kind == ValueKind::kArrivingGradient;
    if (is_gradient && value.alias_of.is_none()) optimized.bytes += value.bytes;
  }
  if (graph.optimized_tensors()) {
    // Other gradients may be results of kind kValue, so the sum above can be too low.
    optimized.tensors = *graph.optimized_tensors();
    optimized.bytes = std::max(optimized.bytes, SizeOf(optimized.tensors));
  } else {
    optimized.is_unknown = optimized.bytes == Bytes(0);
  }
  return optimized;
}

Cost MinOverhead(const JointGraph& graph) {
  IdVector<OpId, bool> is_needed(graph.ops().size());
  Cost dropped;
  for (size_t i = graph.ops().size(); i-- > 0;) {
    const OpId id(i);
    is_needed[id] = is_needed[id] || graph.is_needed(id);
    if (!is_needed[id]) {
      dropped += graph.op(id).cost;
      continue;
    }
    for (const ValueId read : graph.op(id).reads) {
      const OpId producer = graph.value(read).producer;
      if (!producer.is_none()) is_needed[producer] = true;
    }
  }
  return Cost(0) - dropped;
}

Cost PhaseCost(const JointGraph& graph, Phase phase) {
  Cost cost;
  for (const Operation& op : graph.ops()) {
    if (op.phase == phase) cost += op.cost;
  }
  return cost;
}

std::string ShownName(const TensorGraph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (!node.name.empty()) return node.name;
  const std::string output = node.outputs.empty() ? "" : graph.tensor(node.outputs.front()).name;
  return output.empty() ? fmt::format("node {}", node.file_id) : output;
}

std::string ShownName(const JointGraph& graph, OpId id) {
  const Operation& op = graph.op(id);
  if (!op.name.empty()) return op.name;
  const std::string write = op.writes.empty() ? "" : graph.value(op.writes.front()).name;
  return write.empty() ? fmt::format("operation {}", op.file_id) : write;
}

namespace {

constexpr std::array<std::string_view, 5> kLibraries = {"aten", "prims", "torch", "onnx",
                                                        "ai.onnx"};

constexpr std::array<std::string_view, 5> kCommunication = {
    "_c10d_functional", "_c10d_functional_autograd", "c10d_functional", "c10d", "_dtensor"};

// In lower case.
constexpr std::string_view kNonRepeatable[] = {
    // Routers and searches.
    "topk", "sort", "argsort", "argmax", "argmin", "nonzero", "unique", "_unique2", "kthvalue",
    // Attention that saves statistics and the state of its dropout.
    "_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_fused_attention_overrideable", "_flash_attention_forward",
    "_efficient_attention_forward"};

// In lower case.
constexpr std::string_view kRandom[] = {"bernoulli",
                                        "dropout",
                                        "native_dropout",
                                        "rrelu_with_noise",
                                        "multinomial",
                                        "poisson",
                                        "normal",
                                        "normal_functional",
                                        "uniform",
                                        "exponential",
                                        "geometric",
                                        "rand",
                                        "randn",
                                        "rand_like",
                                        "randn_like",
                                        "randint",
                                        "randint_like",
                                        "randperm",
                                        "randomnormal",
                                        "randomuniform",
                                        "randomnormallike",
                                        "randomuniformlike"};

bool HasLibraryPrefix(std::string_view type, std::string_view library) {
  return type.size() > library.size() && type.starts_with(library) &&
         (type[library.size()] == '.' || type[library.size()] == ':');
}

// Returns the type in lower case without its library and overload: "topk" for "aten.topk.default".
std::string BaseTypeName(std::string_view type) {
  for (const std::string_view library : kLibraries) {
    if (!HasLibraryPrefix(type, library)) continue;
    type.remove_prefix(library.size());
    type.remove_prefix(std::min(type.find_first_not_of(".:"), type.size()));
    break;
  }
  return LowerCase(type.substr(0, type.find('.')));
}

bool IsCommunication(std::string_view type) {
  return std::any_of(kCommunication.begin(), kCommunication.end(),
                     [&](std::string_view library) { return HasLibraryPrefix(type, library); });
}

}  // namespace

bool MayRepeatByType(std::string_view type) {
  if (IsCommunication(type) || IsRandomByType(type)) return false;
  return std::find(std::begin(kNonRepeatable), std::end(kNonRepeatable), BaseTypeName(type)) ==
         std::end(kNonRepeatable);
}

bool IsRandomByType(std::string_view type) {
  return std::find(std::begin(kRandom), std::end(kRandom), BaseTypeName(type)) != std::end(kRandom);
}

}  // namespace ckplan
