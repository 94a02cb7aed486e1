#include "lib/problem/runs/run_problem.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "lib/base/stop.h"

namespace ckplan {
namespace {

bool IsReadTwice(const JointGraph& graph, const Operation& op, ValueId storage) {
  ValueId first;
  for (const ValueId read : op.reads) {
    if (graph.value(read).storage != storage || read == first) continue;
    if (!first.is_none()) return true;
    first = read;
  }
  return false;
}

}  // namespace

std::vector<InPlaceWrite> PossibleInPlaceWrites(const JointGraph& graph, OpId id) {
  const Operation& op = graph.op(id);
  std::vector<InPlaceWrite> takeovers;
  for (const ValueId write : op.writes) {
    const int64_t bytes = graph.counted_bytes(write).count();
    if (bytes == 0) continue;
    for (const InPlaceWrite& pair : op.in_place) {
      const ValueId storage = graph.value(pair.read).storage;
      if (pair.write != write || bytes != graph.counted_bytes(storage).count()) continue;
      if (!IsReadTwice(graph, op, storage)) takeovers.push_back({write, storage});
    }
  }
  return takeovers;
}

namespace {

using Lists = std::vector<std::vector<int32_t>>;

bool HasProducer(const JointGraph& graph, ValueId id) {
  return !graph.value(id).producer.is_none();
}

// Returns the values that each operation reads, including the storages of aliases.
Lists ReadsOf(const JointGraph& graph) {
  Lists reads;
  for (const Operation& op : graph.ops()) {
    std::vector<int32_t>& list = reads.emplace_back();
    for (const ValueId read : op.reads) {
      if (HasProducer(graph, read)) list.push_back(read.index());
      const ValueId storage = graph.value(read).storage;
      if (HasProducer(graph, storage)) list.push_back(storage.index());
    }
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return reads;
}

Lists WritesOf(const JointGraph& graph) {
  Lists writes;
  for (const Operation& op : graph.ops()) {
    std::vector<int32_t>& list = writes.emplace_back();
    for (const ValueId write : op.writes) list.push_back(write.index());
  }
  return writes;
}

Lists ReadersOf(const FlatLists& reads, size_t value_count) {
  Lists readers(value_count);
  for (int32_t op = 0; op < static_cast<int32_t>(reads.size()); ++op) {
    for (const int32_t value : reads[op]) readers[static_cast<size_t>(value)].push_back(op);
  }
  return readers;
}

Lists ListInPlacePairs(const JointGraph& graph) {
  Lists pairs;
  // The last operation that has each value in a pair.
  IdVector<ValueId, OpId> paired_by(graph.values().size());
  for (const OpId id : graph.ops().ids()) {
    std::vector<int32_t>& list = pairs.emplace_back();
    for (const auto& [write, storage] : PossibleInPlaceWrites(graph, id)) {
      if (paired_by[write] == id || paired_by[storage] == id) continue;
      paired_by[write] = paired_by[storage] = id;
      list.push_back(write.index());
      list.push_back(storage.index());
    }
  }
  return pairs;
}

// Returns the reads whose memory each operation's writes may reuse: the second member of each pair
// in `in_place`.
Lists ListReusableReads(const FlatLists& in_place, int32_t op_count) {
  Lists reads;
  for (int32_t op = 0; op < op_count; ++op) {
    std::vector<int32_t>& list = reads.emplace_back();
    const std::span<const int32_t> pairs = in_place[op];
    for (size_t i = 1; i < pairs.size(); i += 2) list.push_back(pairs[i]);
    std::sort(list.begin(), list.end());
  }
  return reads;
}

}  // namespace

RunProblem::RunProblem(const JointGraph& graph, const OtherMicroBatches& other_micro_batches)
    : op_count(static_cast<int32_t>(graph.ops().size())),
      value_count(static_cast<int32_t>(graph.values().size())),
      reads(ReadsOf(graph)),
      writes(WritesOf(graph)),
      readers(ReadersOf(reads, graph.values().size())),
      in_place(ListInPlacePairs(graph)),
      taken_over(ListReusableReads(in_place, op_count)),
      total_cost(graph.cost().count()),
      others(other_micro_batches) {
  for (const ValueId id : graph.values().ids()) {
    bytes.push_back(graph.counted_bytes(id).count());
    producer.push_back(graph.value(id).producer.index());
    is_result.push_back(graph.value(id).is_result);
  }
  // A value stays if its memory holds a result.
  for (const ValueId id : graph.results()) {
    is_result[static_cast<size_t>(graph.value(id).storage.index())] = true;
  }
  for (const OpId id : graph.ops().ids()) {
    const Operation& op = graph.op(id);
    cost.push_back(op.cost.count());
    workspace.push_back(op.workspace.count());
    may_repeat.push_back(op.may_repeat);
    is_needed.push_back(graph.is_needed(id));
    int64_t written = 0;
    for (const ValueId write : op.writes) written += graph.counted_bytes(write).count();
    written_bytes.push_back(written);
    int64_t in_place_sum = 0;
    const std::span<const int32_t> pairs = in_place[id.index()];
    for (size_t i = 0; i < pairs.size(); i += 2)
      in_place_sum += bytes[static_cast<size_t>(pairs[i])];
    in_place_bytes.push_back(in_place_sum);
  }
}

int64_t BytesOfOthers(const RunProblem& problem, std::span<const OpId> runs) {
  const OtherMicroBatches& others = problem.others;
  if (others.count == 0) return 0;
  const auto loss = std::find(runs.begin(), runs.end(), OpId(others.loss));
  int64_t saved = 0;
  // What the loss writes is not saved, nor what is made again before its next read.
  std::vector<bool> is_settled(At(problem.value_count), false);
  for (const int32_t write : problem.writes[others.loss]) is_settled[At(write)] = true;
  const auto save = [&](int32_t value) {
    if (!is_settled[At(value)]) saved += problem.bytes[At(value)];
    is_settled[At(value)] = true;
  };
  for (auto run = loss; run != runs.end(); ++run) {
    if (run == loss) continue;
    for (const int32_t read : problem.reads[run->index()]) save(read);
    for (const int32_t write : problem.writes[run->index()]) is_settled[At(write)] = true;
  }
  for (int32_t value = 0; value < problem.value_count; ++value) {
    if (problem.is_result[At(value)] && problem.producer[At(value)] >= 0) save(value);
  }
  return others.count * saved;
}

LazyRuns::LazyRuns(const RunProblem& problem)
    : problem_(problem), is_available_(static_cast<size_t>(problem.value_count)) {}

void LazyRuns::Run(OpId op) {
  stack_.push_back({op.index()});
  RunAll();
}

void LazyRuns::Provide(int32_t value) {
  const int32_t producer = problem_.producer[static_cast<size_t>(value)];
  if (producer < 0 || IsThere(value)) return;
  stack_.push_back({producer});
  RunAll();
}

void LazyRuns::ProvideResults() {
  for (int32_t u = 0; u < problem_.value_count; ++u) {
    if (problem_.is_result[static_cast<size_t>(u)]) Provide(u);
  }
}

void LazyRuns::KeepOnly(const std::vector<bool>& kept) {
  for (size_t u = 0; u < is_available_.size(); ++u) is_available_[u] = is_available_[u] && kept[u];
}

void LazyRuns::RunAll() {
  while (!stack_.empty()) {
    PollStop();
    Frame& frame = stack_.back();
    const std::span<const int32_t> reads = problem_.reads[frame.op];
    if (frame.reads_done < reads.size()) {
      const int32_t read = reads[frame.reads_done++];
      if (!IsThere(read)) stack_.push_back({problem_.producer[static_cast<size_t>(read)]});
      continue;
    }
    const int32_t op = frame.op;
    stack_.pop_back();
    runs_.emplace_back(op);
    for (const int32_t write : problem_.writes[op])
      is_available_[static_cast<size_t>(write)] = true;
  }
}

namespace {

class AliasRuns {
 public:
  explicit AliasRuns(const JointGraph& graph)
      : graph_(graph),
        made_(graph.values().size(), 0),
        base_(graph.values().size(), 0),
        remade_(graph.values().size(), 0),
        settled_at_(graph.values().size(), 0),
        memory_(graph.values().size(), 0) {}

  Schedule Run(const Schedule& schedule) && {
    if (HasTransfers(schedule)) FindAliases();
    for (const Step& step : schedule.steps) {
      PollStop();
      if (step.is_transfer()) {
        Transfer(step);
        continue;
      }
      for (const ValueId read : graph_.op(step.node()).reads) Refresh(read);
      Append(step.node());
    }
    for (const ValueId result : graph_.results()) Refresh(result);
    return std::move(schedule_);
  }

 private:
  // Recomputes the aliases between the storage and the value, from the storage on, if the storage
  // was recomputed since. Stops at an alias that was checked after the latest recomputation in that
  // storage, so a chain of aliases is not walked again for each read.
  void Refresh(ValueId value) {
    const int64_t& remade = remade_[graph_.value(value).storage];
    std::vector<ValueId> chain;
    for (ValueId v = value; !graph_.value(v).alias_of.is_none() && settled_at_[v] != remade;
         v = graph_.value(v).alias_of) {
      PollStop();
      chain.push_back(v);
    }
    for (auto alias = chain.rbegin(); alias != chain.rend(); ++alias) {
      PollStop();
      const Value& alias_value = graph_.value(*alias);
      const bool is_stale = base_[*alias] != made_[alias_value.alias_of];
      if (is_stale && !alias_value.producer.is_none() &&
          IsViewOf(alias_value.producer, alias_value.alias_of)) {
        Append(alias_value.producer);
      }
    }
    for (const ValueId alias : chain) settled_at_[alias] = remade;
  }

  void FindAliases() {
    aliases_.resize(graph_.values().size());
    for (const OpId id : graph_.ops().ids()) {
      for (const ValueId write : graph_.op(id).writes) {
        const Value& value = graph_.value(write);
        if (!value.alias_of.is_none()) aliases_[value.storage].push_back(write);
      }
    }
  }

  void Transfer(const Step& step) {
    schedule_.steps.push_back(step);
    const ValueId value = step.tensor();
    if (step.kind == StepKind::kDrop) dropped_.push_back(memory_[value]);
    if (step.kind != StepKind::kIn) return;
    // The value and the aliases that come back with it are new versions.
    ++remade_[value];
    made_[value] = memory_[value] = ++runs_made_;
    for (const ValueId alias : aliases_[value]) {
      const bool is_dropped =
          std::find(dropped_.begin(), dropped_.end(), memory_[alias]) != dropped_.end();
      if (!is_dropped) continue;
      const ValueId base = graph_.value(alias).alias_of;
      made_[alias] = ++runs_made_;
      base_[alias] = made_[base];
      memory_[alias] = memory_[base];
    }
  }

  bool IsViewOf(OpId id, ValueId base) const {
    const Operation& op = graph_.op(id);
    return op.may_repeat &&
           std::all_of(op.writes.begin(), op.writes.end(),
                       [&](ValueId write) { return !graph_.value(write).alias_of.is_none(); }) &&
           std::all_of(op.reads.begin(), op.reads.end(), [&](ValueId read) {
             return read == base || graph_.value(read).producer.is_none();
           });
  }

  void Append(OpId op) {
    for (const ValueId write : graph_.op(op).writes) {
      const Value& value = graph_.value(write);
      if (made_[write] > 0) ++remade_[value.storage];
      made_[write] = memory_[write] = ++runs_made_;
      if (value.alias_of.is_none()) continue;
      memory_[write] = memory_[value.alias_of];
      base_[write] = made_[value.alias_of];
      const bool is_in_storage = value.alias_of == value.storage;
      settled_at_[write] = is_in_storage ? remade_[value.storage] : settled_at_[value.alias_of];
    }
    schedule_.steps.push_back(Step::Run(op));
  }

  const JointGraph& graph_;
  IdVector<ValueId, int64_t> made_;    // The number of the newest version.
  IdVector<ValueId, int64_t> base_;    // By alias: the version of which it is a view.
  IdVector<ValueId, int64_t> remade_;  // By storage: the number of recomputations in it.
  // By alias: `remade_` of its storage when the alias and those between the two were last up to
  // date.
  IdVector<ValueId, int64_t> settled_at_;
  // The version in the memory of each value.
  IdVector<ValueId, int64_t> memory_;
  std::vector<int64_t> dropped_;                     // The versions whose memory was dropped.
  IdVector<ValueId, std::vector<ValueId>> aliases_;  // By storage; empty without transfers.
  int64_t runs_made_ = 0;
  Schedule schedule_;
};

}  // namespace

Runs RerunAliases(const JointGraph& graph, const Runs& runs) {
  return RunsOf(AliasRuns(graph).Run(ScheduleOfRuns(runs)));
}

Schedule RerunAliases(const JointGraph& graph, const Schedule& schedule) {
  return AliasRuns(graph).Run(schedule);
}

}  // namespace ckplan
