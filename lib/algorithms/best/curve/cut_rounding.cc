#include "lib/algorithms/best/curve/cut_rounding.h"

#include <algorithm>
#include <utility>

#include "lib/algorithms/best/flat_simulation.h"
#include "lib/algorithms/best/run_sequence.h"
#include "lib/base/stop.h"
#include "lib/runs/lazy_runs.h"

namespace ckplan {
namespace {

// A pass over all reruns that leaves out none ends the search; most of what there is to find, the
// first one finds.
constexpr int kMostPasses = 2;

// The most runs that are left out together with the one that read their values.
constexpr int kMostUnread = 64;

class SpareReruns {
 public:
  SpareReruns(const RunProblem& problem, const Runs& runs, int64_t budget)
      : problem_(problem), budget_(budget), sequence_(problem, runs) {}

  Runs LeftOut() && {
    for (int pass = 0; pass < kMostPasses && sequence_.peak() <= budget_; ++pass) {
      bool is_any = false;
      for (const int32_t op : DearestFirst()) {
        PollStop();
        is_any |= LeaveOutOneOf(op);
      }
      if (!is_any) break;
    }
    return sequence_.ToRuns();
  }

 private:
  std::vector<int32_t> DearestFirst() const {
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

  // Tries each run of the operation but the first, from the last to the first.
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

  // Erases reruns that were there only for the erased run, and those that were there for these.
  void EraseUnreadBefore(int32_t erased) {
    std::vector<int32_t> values(problem_.reads[erased].begin(), problem_.reads[erased].end());
    for (int i = 0; i < kMostUnread && !values.empty(); ++i) {
      const int32_t op = problem_.maker[At(values.back())];
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

// Returns for each moment the values to keep across it. What must not be made again and is kept
// across a moment is kept across those before it as well, which the network does not demand where
// every plan keeps the value that is made from it.
std::vector<std::vector<bool>> StayingByMoment(const RunProblem& problem,
                                               const NestedNetwork& network) {
  const std::vector<std::vector<int32_t>> kept = network.KeptByMoment();
  std::vector<std::vector<bool>> staying(kept.size());
  std::vector<int32_t> unrepeatable;
  for (size_t moment = kept.size(); moment-- > 0;) {
    staying[moment] = network.is_certain(moment);
    for (const int32_t value : kept[moment]) {
      staying[moment][At(value)] = true;
      if (!problem.may_repeat[At(problem.maker[At(value)])]) unrepeatable.push_back(value);
    }
    for (const int32_t value : unrepeatable) staying[moment][At(value)] = true;
  }
  return staying;
}

}  // namespace

Runs RunsOfCut(const RunProblem& problem, std::span<const OpId> order,
               const NestedNetwork& network) {
  const std::vector<std::vector<int32_t>> kept = network.KeptByMoment();
  const std::vector<std::vector<bool>> staying = StayingByMoment(problem, network);
  const std::span<const int32_t> moments = network.moments();
  LazyRuns runs(problem);
  size_t next = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (next < moments.size() && static_cast<int32_t>(i) == moments[next]) {
      for (const int32_t read : problem.reads[order[i].index()]) runs.Provide(read);
      for (const int32_t value : kept[next]) runs.Provide(value);
      runs.KeepOnly(staying[next]);
      ++next;
    }
    runs.Run(order[i]);
  }
  runs.ProvideResults();
  return std::move(runs).Take();
}

std::optional<Runs> EvictedAround(const RunProblem& problem, std::span<const OpId> order,
                                  int64_t budget, const EvictionRule& rule,
                                  const std::vector<bool>& kept) {
  const std::optional<Runs> found = Evict(problem, order, budget, rule, kept);
  if (!found) return std::nullopt;
  Runs runs = DropUnread(problem, *found, FirstRuns::kKeepOrder);
  Runs late = DropUnread(problem, RerunLate(problem, runs), FirstRuns::kKeepOrder);
  return PeakOf(problem, late) <= budget ? std::move(late) : std::move(runs);
}

Runs WithoutSpareReruns(const RunProblem& problem, const Runs& runs, int64_t budget) {
  return SpareReruns(problem, runs, budget).LeftOut();
}

}  // namespace ckplan
