#include "lib/problem/runs/rerun_aliases.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/base/stop.h"

namespace ckplan {
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
  // Remakes the aliases between the value and its storage, from the storage on, if the memory that
  // holds them was made again since. If nothing in that storage was made again since an alias was
  // last checked, neither it nor the aliases below it need another check. So a chain of aliases
  // that are made once each takes time proportional to its length, however often it is read.
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
      const Value& made = graph_.value(*alias);
      const bool is_stale = base_[*alias] != made_[made.alias_of];
      if (is_stale && !made.maker.is_none() && IsViewOf(made.maker, made.alias_of)) {
        Append(made.maker);
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
    // The value is a new version, and so is each alias that comes back with it.
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
             return read == base || graph_.value(read).maker.is_none();
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
  IdVector<ValueId, int64_t> base_;    // The version that an alias is a view of.
  IdVector<ValueId, int64_t> remade_;  // How often any value in a storage was made again.
  // For an alias: the `remade_` of its storage when the alias and all aliases between the two were
  // last up to date.
  IdVector<ValueId, int64_t> settled_at_;
  // For a value with memory of its own and its aliases: the version that is in that memory.
  IdVector<ValueId, int64_t> memory_;
  std::vector<int64_t> dropped_;                     // Such versions that were dropped.
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
