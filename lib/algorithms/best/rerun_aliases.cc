#include "lib/algorithms/best/rerun_aliases.h"

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
        settled_at_(graph.values().size(), 0) {}

  Runs Run(const Runs& runs) && {
    for (const OpId op : runs) {
      PollStop();
      for (const ValueId read : graph_.op(op).reads) Refresh(read);
      Append(op);
    }
    for (const ValueId result : graph_.results()) Refresh(result);
    return std::move(runs_);
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
      made_[write] = ++runs_made_;
      if (value.alias_of.is_none()) continue;
      base_[write] = made_[value.alias_of];
      const bool is_in_storage = value.alias_of == value.storage;
      settled_at_[write] = is_in_storage ? remade_[value.storage] : settled_at_[value.alias_of];
    }
    runs_.push_back(op);
  }

  const JointGraph& graph_;
  IdVector<ValueId, int64_t> made_;    // The number of the newest version.
  IdVector<ValueId, int64_t> base_;    // The version that an alias is a view of.
  IdVector<ValueId, int64_t> remade_;  // How often any value in a storage was made again.
  // For an alias: the `remade_` of its storage when the alias and all aliases between the two were
  // last up to date.
  IdVector<ValueId, int64_t> settled_at_;
  int64_t runs_made_ = 0;
  Runs runs_;
};

}  // namespace

Runs RerunAliases(const JointGraph& graph, const Runs& runs) { return AliasRuns(graph).Run(runs); }

}  // namespace ckplan
