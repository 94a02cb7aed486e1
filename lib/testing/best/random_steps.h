// Random training steps, for tests of lib/planning/algorithms/best.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/problem/graph/joint_graph.h"

namespace ckplan {

struct RandomStepOptions {
  int op_count = 12;
  int max_reads = 3;
  int span = 0;  // An operation reads only from the last `span` values; 0 means from all.
  int percent_single_runs = 0;
  int percent_in_place = 0;
  int percent_two_writes = 0;
  int percent_aliases = 0;  // Operations that create a view of a read at no cost.
};

// Each operation reads earlier values. Values without readers are results.
inline JointGraph MakeRandomStep(Rng* rng, const RandomStepOptions& options) {
  JointGraphParts parts;
  const auto add_value = [&](int64_t bytes) {
    Value value;
    value.file_id = static_cast<int64_t>(parts.values.size());
    value.name = "v" + std::to_string(value.file_id);
    value.bytes = Bytes(bytes);
    return parts.values.push_back(std::move(value));
  };
  for (int i = 0; i < options.op_count; ++i) {
    Operation op;
    op.file_id = i;
    op.name = "o" + std::to_string(i);
    op.cost = Cost(rng->Between(0, 20));
    op.workspace = Bytes(rng->Chance(20) ? rng->Between(1, 9) : 0);
    op.may_repeat = !rng->Chance(options.percent_single_runs);
    const auto made = static_cast<int64_t>(parts.values.size());
    const int64_t low = options.span == 0 ? 0 : std::max<int64_t>(0, made - options.span);
    for (int64_t r = made == 0 ? 0 : rng->Between(1, options.max_reads); r > 0; --r) {
      const ValueId read(static_cast<size_t>(rng->Between(low, made - 1)));
      if (std::find(op.reads.begin(), op.reads.end(), read) != op.reads.end()) continue;
      op.reads.push_back(read);
    }
    if (options.percent_aliases > 0 && !op.reads.empty() && rng->Chance(options.percent_aliases)) {
      op.reads.resize(1);
      op.cost = Cost(0);
      op.workspace = Bytes(0);
      const ValueId write = add_value(parts.values[op.reads[0]].bytes.count());
      parts.values[write].alias_of = op.reads[0];
      op.writes.push_back(write);
      parts.ops.push_back(std::move(op));
      continue;
    }
    for (int w = rng->Chance(options.percent_two_writes) ? 2 : 1; w > 0; --w) {
      int64_t bytes = rng->Between(1, 30);
      const bool is_in_place = !op.reads.empty() && rng->Chance(options.percent_in_place);
      if (is_in_place) bytes = parts.values[op.reads[0]].bytes.count();
      const ValueId write = add_value(bytes);
      if (is_in_place && op.in_place.empty()) op.in_place.push_back({write, op.reads[0]});
      op.writes.push_back(write);
    }
    parts.ops.push_back(std::move(op));
  }
  std::vector<bool> is_read(parts.values.size(), false);
  for (const Operation& op : parts.ops) {
    for (const ValueId read : op.reads) is_read[static_cast<size_t>(read.index())] = true;
  }
  for (size_t v = 0; v < is_read.size(); ++v) {
    if (!is_read[v]) parts.results.emplace_back(v);
  }
  return JointGraph::Create(std::move(parts)).value();
}

// Returns a random order of the operations in which each value is written before it is read.
inline std::vector<OpId> RandomOrder(Rng* rng, const JointGraph& graph) {
  std::vector<OpId> order;
  std::vector<bool> has_run(graph.ops().size(), false);
  while (order.size() < graph.ops().size()) {
    std::vector<OpId> ready;
    for (const OpId id : graph.ops().ids()) {
      const std::vector<ValueId>& reads = graph.op(id).reads;
      const bool is_ready = std::all_of(reads.begin(), reads.end(), [&](ValueId read) {
        return has_run[static_cast<size_t>(graph.value(read).producer.index())];
      });
      if (is_ready && !has_run[static_cast<size_t>(id.index())]) ready.push_back(id);
    }
    const auto pick = rng->Between(0, static_cast<int64_t>(ready.size()) - 1);
    order.push_back(ready[static_cast<size_t>(pick)]);
    has_run[static_cast<size_t>(order.back().index())] = true;
  }
  return order;
}

// Inserts repeated runs, each at a random place after an earlier run of the same operation.
inline std::vector<OpId> InsertReruns(Rng* rng, const JointGraph& graph, std::vector<OpId> runs,
                                      int count) {
  for (int i = 0; i < count; ++i) {
    const auto from = static_cast<size_t>(rng->Between(0, static_cast<int64_t>(runs.size()) - 1));
    const OpId op = runs[from];
    if (!graph.op(op).may_repeat) continue;
    const auto to = rng->Between(static_cast<int64_t>(from) + 1, static_cast<int64_t>(runs.size()));
    runs.insert(runs.begin() + to, op);
  }
  return runs;
}

// Returns the operations in the order of their first runs.
inline std::vector<OpId> FirstRunsOf(const JointGraph& graph, const std::vector<OpId>& runs) {
  std::vector<OpId> first;
  IdVector<OpId, bool> has_run(graph.ops().size(), false);
  for (const OpId op : runs) {
    if (!has_run[op]) first.push_back(op);
    has_run[op] = true;
  }
  return first;
}

}  // namespace ckplan
