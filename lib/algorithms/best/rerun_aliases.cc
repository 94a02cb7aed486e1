#include "lib/algorithms/best/rerun_aliases.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace ckplan {
namespace {

class AliasRuns {
 public:
  explicit AliasRuns(const JointGraph& graph)
      : graph_(graph), made_(graph.values().size(), 0), base_(graph.values().size(), 0) {}

  Runs Run(const Runs& runs) && {
    for (const OpId op : runs) {
      for (const ValueId read : graph_.op(op).reads) Refresh(read);
      Append(op);
    }
    for (const ValueId result : graph_.results()) Refresh(result);
    return std::move(runs_);
  }

 private:
  // Makes the aliases between the value and its storage again, from the storage on, as far as they
  // are in memory that was made again since.
  void Refresh(ValueId value) {
    std::vector<ValueId> chain;
    for (ValueId v = value; !graph_.value(v).alias_of.is_none(); v = graph_.value(v).alias_of) {
      chain.push_back(v);
    }
    while (!chain.empty()) {
      const ValueId alias = chain.back();
      chain.pop_back();
      const OpId maker = graph_.value(alias).maker;
      const bool is_stale = base_[alias] != made_[graph_.value(alias).alias_of];
      if (is_stale && !maker.is_none() && IsViewOf(maker, graph_.value(alias).alias_of)) {
        Append(maker);
      }
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
      made_[write] = ++runs_made_;
      const ValueId base = graph_.value(write).alias_of;
      if (!base.is_none()) base_[write] = made_[base];
    }
    runs_.push_back(op);
  }

  const JointGraph& graph_;
  IdVector<ValueId, int64_t> made_;  // The number of the newest version.
  IdVector<ValueId, int64_t> base_;  // Of aliases: the version that it is an alias of.
  int64_t runs_made_ = 0;
  Runs runs_;
};

}  // namespace

Runs RerunAliases(const JointGraph& graph, const Runs& runs) { return AliasRuns(graph).Run(runs); }

}  // namespace ckplan
