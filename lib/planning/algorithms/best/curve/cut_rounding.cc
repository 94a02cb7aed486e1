#include "lib/planning/algorithms/best/curve/cut_rounding.h"

#include <algorithm>
#include <utility>

#include "lib/base/stop.h"
#include "lib/planning/algorithms/best/flat_simulation.h"
#include "lib/planning/algorithms/best/run_sequence.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {
namespace {

// A pass over all reruns that removes none ends the search. The first pass finds most of what there
// is to find.
constexpr int kMaxPasses = 2;

// How many runs may be removed together with the one that reads their values.
constexpr int kMaxUnread = 64;

class SpareReruns {
 public:
  SpareReruns(const RunProblem& problem, const Runs& runs, int64_t budget)
      : problem_(problem), budget_(budget), sequence_(problem, runs) {}

  Runs Run() && {
    for (int pass = 0; pass < kMaxPasses && sequence_.peak() <= budget_; ++pass) {
      bool is_any = false;
      for (const int32_t op : SortByCostPerByte()) {
        PollStop();
        is_any |= LeaveOutOneOf(op);
      }
      if (!is_any) break;
    }
    return sequence_.ToRuns();
  }

 private:
  std::vector<int32_t> SortByCostPerByte() const {
    const std::span<const int32_t> repeated = sequence_.Repeated();
    std::vector<int32_t> ops(repeated.begin(), repeated.end());
    const auto bytes = [&](int32_t op) {
      return static_cast<__int128>(problem_.written_bytes[At(op)] + 1);
    };
    std::sort(ops.begin(), ops.end(), [&](int32_t a, int32_t b) {
      const __int128 cost_a = problem_.cost[At(a)] * bytes(b);
      const __int128 cost_b = problem_.cost[At(b)] * bytes(a);
      return cost_a != cost_b ? cost_a > cost_b : a < b;
    });
    return ops;
  }

  // Tries each rerun of the operation, from last to first.
  bool LeaveOutOneOf(int32_t op) {
    for (size_t k = sequence_.RunsOf(op).size(); k-- > 1;) {
      if (!sequence_.MayErase(op, k)) continue;
      const int64_t before = sequence_.cost();
      sequence_.Erase(sequence_.RunsOf(op)[k]);
      EraseUnreadBefore(op);
      sequence_.Update();
      if (sequence_.peak() <= budget_ && sequence_.cost() < before) {
        sequence_.Commit();
        return true;
      }
      sequence_.Revert();
    }
    return false;
  }

  // Erases reruns that only served the erased run, and those that only served these.
  void EraseUnreadBefore(int32_t erased) {
    std::vector<int32_t> values(problem_.reads[erased].begin(), problem_.reads[erased].end());
    for (int i = 0; i < kMaxUnread && !values.empty(); ++i) {
      const int32_t op = problem_.producer[At(values.back())];
      values.pop_back();
      for (size_t k = sequence_.RunsOf(op).size(); k-- > 1;) {
        if (sequence_.IsRead(op, k) || !sequence_.MayErase(op, k)) continue;
        sequence_.Erase(sequence_.RunsOf(op)[k]);
        values.insert(values.end(), problem_.reads[op].begin(), problem_.reads[op].end());
        break;
      }
    }
  }

  const RunProblem& problem_;
  const int64_t budget_;
  RunSequence sequence_;
};

// Finds the values to keep across each level: those of the choice, and those that must not be
// recomputed and are needed after a later one. The network does not require the latter if every
// plan keeps a value computed from them across the earlier level.
class Staying {
 public:
  Staying(const RunProblem& problem, std::span<const OpId> order, const NestedNetwork& network)
      : problem_(problem),
        network_(network),
        kept_(network.ListKeptByLevel()),
        position_(At(problem.op_count), static_cast<int32_t>(order.size())),
        seen_(At(problem.value_count), 0) {
    for (size_t i = 0; i < order.size(); ++i) {
      position_[At(order[i].index())] = static_cast<int32_t>(i);
    }
  }

  std::vector<std::vector<bool>> Run() && {
    std::vector<std::vector<bool>> staying(kept_.size());
    for (size_t level = kept_.size(); level-- > 0;) {
      staying[level] = network_.is_certain(level);
      for (const int32_t value : kept_[level]) staying[level][At(value)] = true;
      for (const int32_t value : unrepeatable_) staying[level][At(value)] = true;
      if (level > 0) AddNeededBefore(level);
    }
    return staying;
  }

 private:
  // Adds what must stay across the previous level, so that what is kept across this one can be
  // computed in between.
  void AddNeededBefore(size_t level) {
    std::vector<bool> is_there = network_.is_certain(level - 1);
    for (const int32_t value : kept_[level - 1]) is_there[At(value)] = true;
    const int32_t before = network_.position(level - 1);
    std::vector<int32_t> open = kept_[level];
    while (!open.empty()) {
      const int32_t value = open.back();
      open.pop_back();
      const int32_t producer = problem_.producer[At(value)];
      if (is_there[At(value)] || position_[At(producer)] >= before) continue;
      is_there[At(value)] = true;
      if (!problem_.may_repeat[At(producer)]) {
        Add(value);
        continue;
      }
      open.insert(open.end(), problem_.reads[producer].begin(), problem_.reads[producer].end());
    }
  }

  void Add(int32_t value) {
    if (seen_[At(value)]) return;
    seen_[At(value)] = true;
    unrepeatable_.push_back(value);
  }

  const RunProblem& problem_;
  const NestedNetwork& network_;
  const std::vector<std::vector<int32_t>> kept_;
  std::vector<int32_t> position_;  // In the order, by operation.
  std::vector<bool> seen_;
  std::vector<int32_t> unrepeatable_;
};

}  // namespace

Runs RunsOfCut(const RunProblem& problem, std::span<const OpId> order,
               const NestedNetwork& network) {
  const std::vector<std::vector<int32_t>> kept = network.ListKeptByLevel();
  const std::vector<std::vector<bool>> staying = Staying(problem, order, network).Run();
  LazyRuns runs(problem);
  size_t next = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const auto position = static_cast<int32_t>(i);
    const auto is_next = [&](bool is_after_loss, int32_t at) {
      return next < network.level_count() && network.position(next) == at &&
             network.IsAfterLoss(next) == is_after_loss;
    };
    if (is_next(/*is_after_loss=*/false, position)) {
      for (const int32_t read : problem.reads[order[i].index()]) runs.Provide(read);
      for (const int32_t value : kept[next]) runs.Provide(value);
      runs.KeepOnly(staying[next]);
      ++next;
    }
    // What the choice saves is made before the loss.
    const bool is_loss = is_next(/*is_after_loss=*/true, position + 1);
    if (is_loss) {
      for (const int32_t value : kept[next]) runs.Provide(value);
    }
    runs.Run(order[i]);
    if (is_loss) runs.KeepOnly(staying[next++]);
  }
  runs.ProvideResults();
  return std::move(runs).Take();
}

std::optional<Runs> EvictedAround(const RunProblem& problem, std::span<const OpId> order,
                                  int64_t budget, const EvictionRule& rule,
                                  const std::vector<bool>& kept, FlatSimulator* simulator) {
  const std::optional<Runs> found = Evict(problem, order, budget, rule, kept);
  if (!found) return std::nullopt;
  Runs runs = DropUnread(problem, *found, FirstRuns::kKeepOrder);
  Runs late = DropUnread(problem, DelayReruns(problem, runs), FirstRuns::kKeepOrder);
  // The budget is that of one micro-batch.
  const int64_t peak = simulator->Run(late).peak - BytesOfOthers(problem, late);
  return peak <= budget ? std::move(late) : std::move(runs);
}

Runs WithoutSpareReruns(const RunProblem& problem, const Runs& runs, int64_t budget) {
  return SpareReruns(problem, runs, budget).Run();
}

}  // namespace ckplan
