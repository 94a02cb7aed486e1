#include "lib/joint/run_table.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace ckplan {
namespace {

bool IsInMemory(const JointGraph& graph, ValueId id) {
  const Value& storage = graph.value(graph.value(id).storage);
  return IsCountedInPeak(storage.kind) && !storage.maker.is_none();
}

std::vector<int32_t> Made(const JointGraph& graph, const std::vector<ValueId>& values) {
  std::vector<int32_t> made;
  for (const ValueId id : values) {
    if (!graph.value(id).maker.is_none()) made.push_back(id.index());
  }
  return made;
}

// Pairs of a write and a read; the pairs of one write are adjacent, and writes keep their order.
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
  // Position among the writes of the operation that was asked for last.
  IdVector<ValueId, size_t> position_;
};

std::vector<InPlaceWrite> UsablePairs(const JointGraph& graph, const Operation& op) {
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

}  // namespace

StepTable TableOf(const JointGraph& graph) {
  StepTable table;
  PairsByWrite pairs(graph.values().size());
  for (const OpId id : graph.ops().ids()) {
    const Operation& op = graph.op(id);
    table.reads.Append(Made(graph, op.reads));
    table.writes.Append(Made(graph, op.writes));
    table.in_place.Append(pairs.Of(table.writes[id.index()], UsablePairs(graph, op)));
    table.workspace.push_back(op.workspace);
    table.cost.push_back(op.cost);
  }
  for (const ValueId id : graph.values().ids()) {
    const Value& value = graph.value(id);
    table.bytes.push_back(value.bytes);
    table.is_in_memory.push_back(IsInMemory(graph, id));
    // An alias of a value that is counted elsewhere has no memory either.
    table.alias_of.push_back(table.is_in_memory.back() ? value.alias_of.index() : -1);
    table.is_result.push_back(value.is_result);
  }
  return table;
}

StepTable TableOf(const RunProblem& problem) {
  StepTable table;
  table.reads = problem.reads;
  table.writes = problem.writes;
  PairsByWrite pairs(At(problem.value_count));
  for (int32_t op = 0; op < problem.op_count; ++op) {
    std::vector<InPlaceWrite> in_place;
    const std::span<const int32_t> flat = problem.in_place[op];
    for (size_t i = 0; i < flat.size(); i += 2) {
      in_place.push_back({ValueId(flat[i]), ValueId(flat[i + 1])});
    }
    table.in_place.Append(pairs.Of(problem.writes[op], std::move(in_place)));
    table.workspace.emplace_back(problem.workspace[At(op)]);
    table.cost.emplace_back(problem.cost[At(op)]);
  }
  for (const int64_t bytes : problem.bytes) table.bytes.emplace_back(bytes);
  table.alias_of.assign(table.bytes.size(), -1);
  table.is_in_memory.assign(table.bytes.size(), true);
  table.is_result = problem.is_result;
  return table;
}

std::vector<int32_t> KindsOf(std::span<const OpId> runs) {
  std::vector<int32_t> kinds;
  kinds.reserve(runs.size());
  for (const OpId op : runs) kinds.push_back(op.index());
  return kinds;
}

}  // namespace ckplan
