#include "lib/problem/runs/run_rules.h"

#include <algorithm>
#include <utility>

#include "lib/problem/schedule/expand.h"

namespace ckplan {
namespace {

// Tracks the state of a sequence of runs that the rules depend on.
class RunProgress {
 public:
  RunProgress(const RunRules& rules, OpId last_of_forward)
      : rules_(rules),
        last_of_forward_(last_of_forward),
        has_ended_(last_of_forward.is_none()),
        has_run_(rules.producers.size()),
        is_made_late_(rules.producers.size()) {}

  bool HasRun(int32_t op) const { return has_run_[At(op)]; }
  // Returns true if `op` must not read the value that `producer` last wrote, as it is from the
  // forward pass.
  bool IsReadForbidden(int32_t op, int32_t producer) const {
    if (!rules_.is_recomputed[At(producer)] || is_made_late_[At(producer)]) return false;
    return rules_.is_backward[At(op)] || (has_ended_ && has_run_[At(op)]);
  }
  void Add(int32_t op) {
    is_made_late_[At(op)] = has_ended_ && has_run_[At(op)];
    has_run_[At(op)] = true;
    has_ended_ = has_ended_ || op == last_of_forward_.index();
  }

 private:
  const RunRules& rules_;
  const OpId last_of_forward_;
  bool has_ended_;  // The forward pass has ended.
  std::vector<bool> has_run_;
  std::vector<bool> is_made_late_;  // The last run was a recomputation after the forward pass.
};

// Appends runs, each preceded by the recomputations that it needs.
class ConstrainedRuns {
 public:
  ConstrainedRuns(const RunRules& rules, OpId last_of_forward)
      : rules_(rules), progress_(rules, last_of_forward) {}

  void Append(int32_t target) {
    if (rules_.runs_once[At(target)] && progress_.HasRun(target)) return;
    stack_.push_back({target});
    while (!stack_.empty()) {
      Frame& frame = stack_.back();
      const int32_t op = frame.op;
      const std::vector<int32_t>& producers = rules_.producers[At(op)];
      if (frame.producers_done < producers.size()) {
        const int32_t producer = producers[frame.producers_done++];
        if (progress_.IsReadForbidden(op, producer)) stack_.push_back({producer});
        continue;
      }
      stack_.pop_back();
      progress_.Add(op);
      runs_.emplace_back(op);
    }
  }

  Runs Take() && { return std::move(runs_); }

 private:
  struct Frame {
    int32_t op;
    size_t producers_done = 0;
  };

  const RunRules& rules_;
  RunProgress progress_;
  std::vector<Frame> stack_;  // Depth-first without recursion: a chain may have 100,000 operations.
  Runs runs_;
};

// Removes recomputations whose values are not read before the next run of the same operation or the
// end.
Runs RemoveUnread(const RunRules& rules, const Runs& runs) {
  std::vector<bool> is_first(runs.size());
  std::vector<bool> has_run(rules.producers.size());
  for (size_t k = 0; k < runs.size(); ++k) {
    is_first[k] = !has_run[At(runs[k].index())];
    has_run[At(runs[k].index())] = true;
  }
  std::vector<bool> is_read_later(rules.producers.size());
  Runs kept;
  for (size_t k = runs.size(); k-- > 0;) {
    const size_t op = At(runs[k].index());
    if (!is_first[k] && !is_read_later[op]) continue;
    kept.push_back(runs[k]);
    is_read_later[op] = false;
    for (const int32_t producer : rules.producers[op]) is_read_later[At(producer)] = true;
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

}  // namespace

bool IsOfBackwardPass(const Operation& op) {
  return op.phase == Phase::kBackward && op.op != kLossType;
}

RunRules RulesOf(const JointGraph& graph, const RunProblem& problem) {
  RunRules rules;
  const size_t count = graph.ops().size();
  rules.runs_once.resize(count);
  rules.is_recomputed.resize(count);
  for (const OpId id : graph.ops().ids()) {
    rules.is_backward.push_back(IsOfBackwardPass(graph.op(id)));
    std::vector<int32_t>& producers = rules.producers.emplace_back();
    for (const int32_t read : problem.reads[id.index()]) {
      producers.push_back(problem.producer[At(read)]);
    }
    std::sort(producers.begin(), producers.end());
    producers.erase(std::unique(producers.begin(), producers.end()), producers.end());
  }
  return rules;
}

OpId LastOfForwardPass(const RunRules& rules, const Runs& runs) {
  OpId last;
  std::vector<bool> has_run(rules.producers.size());
  for (const OpId id : runs) {
    const size_t op = At(id.index());
    if (rules.is_backward[op]) break;
    if (!has_run[op]) last = id;
    has_run[op] = true;
  }
  return last;
}

bool Satisfies(const RunRules& rules, const Runs& runs) {
  RunProgress progress(rules, LastOfForwardPass(rules, runs));
  for (const OpId id : runs) {
    const int32_t op = id.index();
    if (rules.runs_once[At(op)] && progress.HasRun(op)) return false;
    for (const int32_t producer : rules.producers[At(op)]) {
      if (progress.IsReadForbidden(op, producer)) return false;
    }
    progress.Add(op);
  }
  return true;
}

Runs ConstrainedTo(const RunRules& rules, const Runs& runs) {
  if (Satisfies(rules, runs)) return runs;
  ConstrainedRuns constrained(rules, LastOfForwardPass(rules, runs));
  for (const OpId op : runs) constrained.Append(op.index());
  return RemoveUnread(rules, std::move(constrained).Take());
}

std::vector<bool> FindForcedReruns(const RunRules& rules, const std::vector<bool>& is_required) {
  std::vector<bool> is_forced(rules.producers.size());
  // Producers precede their readers.
  for (size_t op = rules.producers.size(); op-- > 0;) {
    if (!is_forced[op] && !(rules.is_backward[op] && is_required[op])) continue;
    for (const int32_t producer : rules.producers[op]) {
      if (rules.is_recomputed[At(producer)]) is_forced[At(producer)] = true;
    }
  }
  return is_forced;
}

}  // namespace ckplan
