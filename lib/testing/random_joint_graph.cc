#include "lib/testing/random_joint_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ckplan {
namespace {

// File ids differ from positions so that tests detect code that confuses them.
int64_t ValueFileId(size_t position) { return static_cast<int64_t>(position) * 3 + 5; }
int64_t OpFileId(size_t position) { return static_cast<int64_t>(position) * 7 + 2; }

class RandomJointBuilder {
 public:
  RandomJointBuilder(Rng* rng, const RandomJointOptions& options) : rng_(*rng), options_(options) {}

  JointGraph Build() {
    parts_.name = "random";
    for (int i = 0; i < options_.constants; ++i) {
      AddValue(i % 2 == 0 ? ValueKind::kConstant : ValueKind::kParameter, RandomBytes());
    }
    for (int i = 0; i < options_.ops; ++i) AddOperation(i);
    ChooseResults();
    return JointGraph::Create(std::move(parts_)).value();
  }

 private:
  Bytes RandomBytes() { return Bytes(rng_.Between(0, options_.max_bytes)); }

  ValueId AddValue(ValueKind kind, Bytes bytes) {
    const size_t position = parts_.values.size();
    Value value;
    value.file_id = ValueFileId(position);
    value.name = fmt::format("v{}", position);
    value.bytes = bytes;
    value.kind = kind;
    is_read_.push_back(false);
    return parts_.values.push_back(value);
  }

  // Takes half of the picks from the last few values, so that graphs are deep and not only wide.
  ValueId PickValue() {
    const auto count = static_cast<int64_t>(parts_.values.size());
    const int64_t low = rng_.Chance(50) ? std::max<int64_t>(0, count - 4) : 0;
    return ValueId(static_cast<size_t>(rng_.Between(low, count - 1)));
  }

  void AddOperation(int position) {
    Operation op;
    op.file_id = OpFileId(parts_.ops.size());
    op.name = fmt::format("op{}", position);
    if (rng_.Chance(50)) op.op = "mul";
    if (rng_.Chance(20)) op.module = "layers.0";
    op.phase = position * 2 < options_.ops ? Phase::kForward : Phase::kBackward;
    ChooseReads(&op);
    ChooseWrites(&op);
    ChooseInPlace(&op);
    op.cost = Cost(rng_.Between(0, options_.max_cost));
    if (rng_.Chance(options_.workspace)) op.workspace = RandomBytes();
    op.may_repeat = !rng_.Chance(options_.never_repeat);
    parts_.ops.push_back(std::move(op));
  }

  void ChooseReads(Operation* op) {
    if (parts_.values.empty()) return;
    const int64_t count = rng_.Between(parts_.ops.empty() ? 0 : 1, options_.max_reads);
    for (int64_t i = 0; i < count; ++i) {
      const ValueId pick = PickValue();
      const bool is_duplicate =
          std::find(op->reads.begin(), op->reads.end(), pick) != op->reads.end();
      if (is_duplicate && !rng_.Chance(options_.duplicate_read)) continue;
      op->reads.push_back(pick);
    }
    for (const ValueId read : op->reads) is_read_[static_cast<size_t>(read.index())] = true;
  }

  ValueId PickRead(const Operation& op) {
    return op
        .reads[static_cast<size_t>(rng_.Between(0, static_cast<int64_t>(op.reads.size()) - 1))];
  }

  void ChooseWrites(Operation* op) {
    if (rng_.Chance(options_.no_write)) return;
    const int count = rng_.Chance(options_.second_write) ? 2 : 1;
    for (int i = 0; i < count; ++i) {
      Bytes bytes = RandomBytes();
      if (!op->reads.empty() && rng_.Chance(options_.equal_bytes)) {
        bytes = parts_.values[PickRead(*op)].bytes;
      }
      const bool is_gradient = rng_.Chance(options_.parameter_gradient);
      const ValueId write =
          AddValue(is_gradient ? ValueKind::kParameterGradient : ValueKind::kValue, bytes);
      op->writes.push_back(write);
      if (!op->reads.empty() && rng_.Chance(options_.alias)) {
        parts_.values[write].alias_of = PickRead(*op);
      }
    }
  }

  void ChooseInPlace(Operation* op) {
    for (const ValueId write : op->writes) {
      for (const ValueId read : op->reads) {
        if (rng_.Chance(options_.in_place)) op->in_place.push_back({write, read});
      }
    }
  }

  void ChooseResults() {
    const auto constants = static_cast<size_t>(options_.constants);
    for (size_t i = 0; i < parts_.values.size(); ++i) {
      const bool is_result = i < constants ? rng_.Chance(options_.given_result)
                             : is_read_[i] ? rng_.Chance(options_.early_result)
                                           : !rng_.Chance(options_.dead_end);
      if (is_result) parts_.results.emplace_back(i);
    }
  }

  Rng& rng_;
  const RandomJointOptions& options_;
  JointGraphParts parts_;
  std::vector<bool> is_read_;
};

// Chooses which operations run: all that the results need, and most of the others.
IdVector<OpId, bool> ChooseOperations(Rng& rng, const JointGraph& graph) {
  IdVector<OpId, bool> runs(graph.ops().size());
  for (auto i = static_cast<int32_t>(graph.ops().size()) - 1; i >= 0; --i) {
    const OpId id(i);
    runs[id] = runs[id] || graph.is_needed(id) || rng.Chance(70);
    if (!runs[id]) continue;
    for (const ValueId read : graph.op(id).reads) {
      const OpId producer = graph.value(read).producer;
      if (!producer.is_none()) runs[producer] = true;
    }
  }
  return runs;
}

bool CanRun(const JointGraph& graph, OpId id, const IdVector<OpId, bool>& has_run) {
  const std::vector<ValueId>& reads = graph.op(id).reads;
  return std::all_of(reads.begin(), reads.end(), [&](ValueId read) {
    const OpId producer = graph.value(read).producer;
    return producer.is_none() || has_run[producer];
  });
}

}  // namespace

JointGraph RandomJointGraph(Rng& rng, const RandomJointOptions& options) {
  return RandomJointBuilder(&rng, options).Build();
}

std::vector<OpId> RandomRuns(Rng& rng, const JointGraph& graph) {
  const IdVector<OpId, bool> chosen = ChooseOperations(rng, graph);
  IdVector<OpId, bool> has_run(graph.ops().size());
  std::vector<OpId> runs, ready, repeatable;
  const int repeats = static_cast<int>(rng.Between(0, 40));
  const int disorder = rng.Chance(50) ? 0 : 50;
  while (true) {
    ready.clear();
    repeatable.clear();
    for (const OpId id : graph.ops().ids()) {
      if (has_run[id] && graph.op(id).may_repeat) repeatable.push_back(id);
      if (chosen[id] && !has_run[id] && CanRun(graph, id, has_run)) ready.push_back(id);
    }
    if (ready.empty()) return runs;
    const auto pick = [&](const std::vector<OpId>& list) {
      return list[static_cast<size_t>(rng.Between(0, static_cast<int64_t>(list.size()) - 1))];
    };
    OpId next = rng.Chance(disorder) ? pick(ready) : ready.front();
    if (!repeatable.empty() && rng.Chance(repeats)) next = pick(repeatable);
    has_run[next] = true;
    runs.push_back(next);
  }
}

}  // namespace ckplan
