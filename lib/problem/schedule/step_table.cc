#include "lib/problem/schedule/step_table.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

namespace ckplan {
namespace {

// Skips the graph's inputs, which are always in memory and count as constants.
std::vector<int32_t> IndicesWithoutInputs(const TensorGraph& graph,
                                          const std::vector<TensorId>& tensors) {
  std::vector<int32_t> indices;
  for (const TensorId id : tensors) {
    if (!graph.is_input(id)) indices.push_back(id.index());
  }
  return indices;
}

std::vector<int32_t> PairsOf(const TensorGraph& graph, const Node& node) {
  std::vector<int32_t> pairs;
  for (const auto& [output, input] : node.in_place) {
    if (graph.is_input(input)) continue;
    if (graph.tensor(input).bytes != graph.tensor(output).bytes) continue;
    pairs.push_back(output.index());
    pairs.push_back(input.index());
  }
  return pairs;
}

bool IsInMemory(const JointGraph& graph, ValueId id) {
  const Value& storage = graph.value(graph.value(id).storage);
  return IsCountedInPeak(storage.kind) && !storage.producer.is_none();
}

std::vector<int32_t> IndicesWithoutInputs(const JointGraph& graph,
                                          const std::vector<ValueId>& values) {
  std::vector<int32_t> indices;
  for (const ValueId id : values) {
    if (!graph.value(id).producer.is_none()) indices.push_back(id.index());
  }
  return indices;
}

// Sorts pairs of a write and a read by the order of the writes.
class PairsByWrite {
 public:
  explicit PairsByWrite(size_t value_count) : position_(value_count) {}

  std::vector<int32_t> Of(std::span<const int32_t> writes, std::vector<InPlaceWrite> pairs) {
    for (size_t i = 0; i < writes.size(); ++i) position_[ValueId(writes[i])] = i;
    std::stable_sort(pairs.begin(), pairs.end(), [&](const auto& a, const auto& b) {
      return position_[a.write] < position_[b.write];
    });
    std::vector<int32_t> flat;
    for (const auto& [write, read] : pairs) {
      flat.push_back(write.index());
      flat.push_back(read.index());
    }
    return flat;
  }

 private:
  // The position of each value among the writes of the latest call.
  IdVector<ValueId, size_t> position_;
};

std::vector<InPlaceWrite> FindUsablePairs(const JointGraph& graph, const Operation& op) {
  std::vector<InPlaceWrite> usable;
  for (const InPlaceWrite& pair : op.in_place) {
    const Value& write = graph.value(pair.write);
    const Value& memory = graph.value(graph.value(pair.read).storage);
    const bool is_own = write.alias_of.is_none() && IsInMemory(graph, pair.write);
    if (is_own && IsInMemory(graph, pair.read) && memory.bytes == write.bytes) {
      usable.push_back(pair);
    }
  }
  return usable;
}

StepTable MakeForwardTable(const TensorGraph& graph) {
  StepTable table;
  table.has_one_taker = true;
  for (const Node& node : graph.nodes()) {
    table.reads.Append(IndicesWithoutInputs(graph, node.inputs));
    table.writes.Append(IndicesWithoutInputs(graph, node.outputs));
    table.in_place.Append(PairsOf(graph, node));
    table.workspace.push_back(node.forward_workspace);
    table.cost.push_back(node.forward_cost);
  }
  table.reads.Append(IndicesWithoutInputs(graph, graph.outputs()));
  table.workspace.emplace_back();
  for (const Node& node : graph.nodes()) {
    table.reads.Append(IndicesWithoutInputs(graph, node.backward_reads));
    table.workspace.push_back(node.backward_workspace);
  }
  while (table.writes.size() < table.reads.size()) {
    table.writes.Append({});
    table.in_place.Append({});
    table.cost.emplace_back();
  }
  for (const Tensor& tensor : graph.tensors()) table.bytes.push_back(tensor.bytes);
  table.may_repeat.assign(table.reads.size(), false);
  std::fill_n(table.may_repeat.begin(), graph.nodes().size(), true);
  table.is_needed.assign(table.reads.size(), true);
  table.alias_of.assign(graph.tensors().size(), -1);
  table.is_in_memory.assign(graph.tensors().size(), true);
  table.is_result.assign(graph.tensors().size(), false);
  return table;
}

StepTable MakeJointTable(const JointGraph& graph) {
  StepTable table;
  PairsByWrite pairs(graph.values().size());
  for (const OpId id : graph.ops().ids()) {
    const Operation& op = graph.op(id);
    table.reads.Append(IndicesWithoutInputs(graph, op.reads));
    table.writes.Append(IndicesWithoutInputs(graph, op.writes));
    table.in_place.Append(pairs.Of(table.writes[id.index()], FindUsablePairs(graph, op)));
    table.workspace.push_back(op.workspace);
    table.cost.push_back(op.cost);
    table.may_repeat.push_back(op.may_repeat);
    table.is_needed.push_back(graph.is_needed(id));
  }
  for (const ValueId id : graph.values().ids()) {
    const Value& value = graph.value(id);
    table.bytes.push_back(value.bytes);
    table.is_in_memory.push_back(IsInMemory(graph, id));
    // An alias of a value that counts as a constant has no memory either.
    table.alias_of.push_back(table.is_in_memory.back() ? value.alias_of.index() : -1);
    table.is_result.push_back(value.is_result);
  }
  return table;
}

// Adds the transfer kinds of one value.
void AppendTransfersOf(int32_t value, StepTable* table) {
  const int32_t value_list[] = {value};
  for (int32_t i = 0; i < StepTable::kTransferKinds; ++i) {
    const bool is_in = i + 1 == StepTable::kTransferKinds;
    table->reads.Append(is_in ? std::span<const int32_t>() : value_list);
    table->writes.Append(is_in ? std::span<const int32_t>(value_list) : std::span<const int32_t>());
    table->in_place.Append({});
  }
}

// Sets the properties that all transfer kinds share.
void CompleteTransfers(StepTable* table) {
  const size_t kinds = table->reads.size();
  table->workspace.resize(kinds);
  table->cost.resize(kinds);
  table->may_repeat.resize(kinds, true);
  table->is_needed.resize(kinds, false);
}

// A forward graph's table has the transfers of gradients before those of tensors.
int32_t KindOfTransfer(const TrainingStep& of, const Step& step) {
  const int32_t way = static_cast<int32_t>(step.kind) - static_cast<int32_t>(StepKind::kOut);
  const auto count = static_cast<int32_t>(of.node_count());
  if (of.is_joint()) return count + StepTable::kTransferKinds * step.index + way;
  const auto tensors = static_cast<int32_t>(of.forward().tensors().size());
  const int32_t place = (step.index + tensors) % (2 * tensors);
  return 2 * count + 1 + StepTable::kTransferKinds * place + way;
}

}  // namespace

StepTable TableOf(const TrainingStep& step) {
  return step.is_joint() ? MakeJointTable(step.joint()) : MakeForwardTable(step.forward());
}

IdVector<ValueId, bool> MovableValues(const JointGraph& graph) {
  IdVector<ValueId, bool> may_move;
  for (const ValueId id : graph.values().ids()) {
    may_move.push_back(graph.value(id).storage == id && IsInMemory(graph, id));
  }
  // Arriving gradients are results.
  for (const ValueId id : graph.results()) may_move[graph.value(id).storage] = false;
  return may_move;
}

void AddTransfers(const JointGraph& graph, StepTable* table) {
  if (table->has_transfers()) return;
  const IdVector<ValueId, bool> may_move = MovableValues(graph);
  table->may_move.assign(may_move.begin(), may_move.end());
  table->first_transfer = static_cast<int32_t>(graph.ops().size());
  std::vector<std::vector<int32_t>> aliases(graph.values().size());
  for (const ValueId id : graph.values().ids()) {
    const Value& value = graph.value(id);
    table->storage_of.push_back(value.storage.index());
    const bool is_alias = value.storage != id && !value.producer.is_none();
    if (is_alias) aliases[static_cast<size_t>(value.storage.index())].push_back(id.index());
    AppendTransfersOf(id.index(), table);
  }
  table->aliases = FlatLists(aliases);
  CompleteTransfers(table);
}

void AddTransfers(const TensorGraph& graph, StepTable* table) {
  if (table->has_transfers()) return;
  const auto tensors = static_cast<int32_t>(graph.tensors().size());
  // Gradients move, too, but they are not values of the table.
  for (int32_t i = 0; i < StepTable::kTransferKinds * tensors; ++i) {
    table->reads.Append({});
    table->writes.Append({});
    table->in_place.Append({});
  }
  table->first_transfer = static_cast<int32_t>(table->reads.size());
  for (int32_t tensor = 0; tensor < tensors; ++tensor) {
    table->may_move.push_back(!graph.is_input(TensorId(tensor)));
    table->storage_of.push_back(tensor);
    AppendTransfersOf(tensor, table);
  }
  table->aliases = FlatLists(std::vector<std::vector<int32_t>>(graph.tensors().size()));
  CompleteTransfers(table);
}

StepTable MakeStepTable(const TrainingStep& step, const Schedule& schedule) {
  StepTable table = TableOf(step);
  if (!HasTransfers(schedule)) return table;
  if (step.is_joint()) {
    AddTransfers(step.joint(), &table);
  } else {
    AddTransfers(step.forward(), &table);
  }
  return table;
}

int32_t KindOf(const TensorGraph& graph, const Step& step) {
  const auto nodes = static_cast<int32_t>(graph.nodes().size());
  if (step.kind == StepKind::kForward) return step.index;
  return step.kind == StepKind::kLoss ? nodes : nodes + 1 + step.index;
}

std::vector<int32_t> KindsOf(const TrainingStep& of, const Schedule& schedule) {
  std::vector<int32_t> kinds;
  kinds.reserve(schedule.steps.size());
  for (const Step& step : schedule.steps) {
    if (step.kind == StepKind::kFree) {
      kinds.push_back(FreeOf(step.index));
    } else if (step.kind == StepKind::kFreeGradient) {
      kinds.push_back(FreeOf(static_cast<int32_t>(of.tensor_count()) + step.index));
    } else if (step.is_transfer()) {
      kinds.push_back(KindOfTransfer(of, step));
    } else {
      kinds.push_back(step.kind == StepKind::kRun ? step.index : KindOf(of.forward(), step));
    }
  }
  return kinds;
}

}  // namespace ckplan
