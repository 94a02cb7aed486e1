#include "lib/planning/algorithms/offload/greedy_offload.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/stop.h"
#include "lib/problem/runs/copy_schedule.h"
#include "lib/problem/runs/run_problem.h"
#include "lib/problem/runs/runs_and_loads.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

enum class OffloadRule : uint8_t { kEarliest, kLargest, kCostliest };

class GreedyOffload : public PreparedRunSolver {
 public:
  GreedyOffload(const JointGraph& graph, const OffloadTerms& terms, OffloadRule rule)
      : graph_(graph),
        terms_(terms),
        rule_(rule),
        problem_(graph),
        order_(OwnOrder(graph)),
        simulator_(TrainingStep(graph).WithLink(&terms.link)) {
    const Simulation baseline = simulator_.Run(order_).value();
    moment_ = baseline.peak_step;
    own_peak_ = baseline.peak.count();
    FindCrossing();
    least_ = FindMinPeakPlan();
  }

  Knob knob() const override {
    return {Knob::Kind::kPeakLimit, least_.peak, own_peak_, least_.peak};
  }

  Result<RunOutcome> Solve(int64_t limit, const SolveLimits&) override {
    if (limit < least_.peak) {
      return MakeError(ErrorCode::kInfeasible,
                       fmt::format("greedy offload has no plan within {} bytes", limit));
    }
    std::optional<Plan> plan = PlanWithin(limit);
    return OutcomeOf(plan ? *plan : least_);
  }

 private:
  struct Plan {
    Schedule schedule;
    int64_t peak = 0;
    int64_t host_peak = 0;
  };

  // Finds the values that cross the moment, in the order in which they are offloaded or dropped.
  void FindCrossing() {
    std::vector<int32_t> position(At(problem_.op_count));
    for (size_t i = 0; i < order_.size(); ++i) {
      position[At(order_[i].index())] = static_cast<int32_t>(i);
    }
    const auto moment = static_cast<int32_t>(moment_);
    for (int32_t value = 0; value < problem_.value_count; ++value) {
      const int32_t producer = problem_.producer[At(value)];
      if (producer < 0 || position[At(producer)] >= moment) continue;
      const std::span<const int32_t> readers = problem_.readers[value];
      // The moment's own operation needs its inputs in memory.
      const bool is_read_there = std::any_of(
          readers.begin(), readers.end(), [&](int32_t op) { return position[At(op)] == moment; });
      const bool is_read_later = std::any_of(readers.begin(), readers.end(),
                                             [&](int32_t op) { return position[At(op)] > moment; });
      if (problem_.bytes[At(value)] == 0 || is_read_there) continue;
      if (terms_.may_move[ValueId(value)] && is_read_later) movable_.push_back(value);
      if (problem_.may_repeat[At(producer)] && !problem_.is_result[At(value)]) {
        droppable_.push_back(value);
      }
    }
    const auto by_making = [&](int32_t a, int32_t b) {
      return std::pair(position[At(problem_.producer[At(a)])], a) <
             std::pair(position[At(problem_.producer[At(b)])], b);
    };
    std::sort(movable_.begin(), movable_.end(), by_making);
    std::sort(droppable_.begin(), droppable_.end(), by_making);
    if (rule_ == OffloadRule::kLargest) {
      std::stable_sort(movable_.begin(), movable_.end(), [&](int32_t a, int32_t b) {
        return problem_.bytes[At(a)] > problem_.bytes[At(b)];
      });
    }
    if (rule_ == OffloadRule::kCostliest) {
      std::stable_sort(movable_.begin(), movable_.end(),
                       [&](int32_t a, int32_t b) { return IsCheaper(b, a); });
    }
    std::stable_sort(droppable_.begin(), droppable_.end(),
                     [&](int32_t a, int32_t b) { return IsCheaper(a, b); });
    movable_.resize(CountCarriedByLink());
  }

  // Tells whether `a` takes less time per byte to compute than `b`.
  bool IsCheaper(int32_t a, int32_t b) const {
    const auto product = [&](int32_t cost_of, int32_t bytes_of) {
      return static_cast<__int128>(problem_.cost[At(problem_.producer[At(cost_of)])]) *
             problem_.bytes[At(bytes_of)];
    };
    return product(a, b) < product(b, a);
  }

  // Returns how many values can be copied out before the moment.
  size_t CountCarriedByLink() const {
    int64_t time = 0;
    for (size_t i = 0; i < moment_; ++i) time += problem_.cost[At(order_[i].index())];
    size_t count = 0;
    for (const int32_t value : movable_) {
      const Bytes bytes(problem_.bytes[At(value)]);
      time -= terms_.link.TimeOf(CopyWay::kOut, bytes).count();
      if (terms_.link.duplex == Duplex::kHalf) {
        time -= terms_.link.TimeOf(CopyWay::kIn, bytes).count();
      }
      if (time < 0) break;
      ++count;
    }
    return count;
  }

  // Offloads the first `moved` values, and drops the first `dropped` ones.
  RunsAndLoads MakeSteps(size_t moved, size_t dropped) const {
    OffloadChoice choice{order_, moment_, std::vector<bool>(At(problem_.value_count), true),
                         std::vector<bool>(At(problem_.value_count), false)};
    for (size_t i = 0; i < dropped; ++i) choice.kept[At(droppable_[i])] = false;
    for (size_t i = 0; i < moved; ++i) {
      choice.kept[At(movable_[i])] = false;
      choice.loaded[At(movable_[i])] = true;
    }
    return ExpandChoice(problem_, choice);
  }

  Plan PlanOf(const RunsAndLoads& steps, int64_t limit) {
    PollStop();
    const CopyTask task = CopyTaskOf(problem_, steps);
    CopyScheduler scheduler(terms_.link);
    const CopyPlan& copies = scheduler.Run(task, std::max(limit, PeakOf(task)));
    Plan plan{RerunAliases(graph_, ScheduleWithCopies(problem_, steps, copies))};
    const Simulation measured = simulator_.Run(plan.schedule).value();
    plan.peak = measured.peak.count();
    plan.host_peak = measured.host_peak.count();
    return plan;
  }

  bool Fits(const Plan& plan, int64_t limit) const {
    return plan.peak <= limit && HasRoomOnHost(plan);
  }
  bool HasRoomOnHost(const Plan& plan) const {
    return !terms_.host_budget || plan.host_peak <= terms_.host_budget->count();
  }

  // Finds the smallest count for which the plan fits, assuming that larger counts need less memory.
  template <typename PlanWith>
  std::optional<Plan> FirstThatFits(size_t max_count, int64_t limit, PlanWith plan_with) {
    std::optional<Plan> found;
    size_t low = 0;
    for (size_t high = max_count + 1; low < high;) {
      const size_t middle = low + (high - low) / 2;
      Plan plan = plan_with(middle);
      if (Fits(plan, limit)) {
        found = std::move(plan);
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return found;
  }

  std::optional<Plan> PlanWithin(int64_t limit) {
    const size_t moved = MaxOffloaded();
    if (std::optional<Plan> plan = FirstThatFits(
            moved, limit, [&](size_t count) { return PlanOf(MakeSteps(count, 0), limit); })) {
      return plan;
    }
    return FirstThatFits(droppable_.size(), limit,
                         [&](size_t count) { return PlanOf(MakeSteps(moved, count), limit); });
  }

  // Returns how many values fit on the host.
  size_t MaxOffloaded() const {
    if (!terms_.host_budget) return movable_.size();
    int64_t room = terms_.host_budget->count();
    size_t count = 0;
    for (; count < movable_.size(); ++count) {
      room -= problem_.bytes[At(movable_[count])];
      if (room < 0) break;
    }
    return count;
  }

  // Keeps everything at first, then drops more and more, and takes the plan with the lowest peak.
  Plan FindMinPeakPlan() {
    constexpr size_t kTrials = 16;
    Plan least = PlanOf(MakeSteps(0, 0), own_peak_);
    for (size_t i = 0; i <= kTrials; ++i) {
      const size_t dropped = droppable_.size() * i / kTrials;
      const RunsAndLoads steps = MakeSteps(MaxOffloaded(), dropped);
      Plan plan = PlanOf(steps, PeakOf(CopyTaskOf(problem_, steps)));
      if (plan.peak < least.peak && HasRoomOnHost(plan)) least = std::move(plan);
    }
    return least;
  }

  static RunOutcome OutcomeOf(const Plan& plan) {
    RunOutcome outcome{RunsOf(plan.schedule), false, "heuristic: greedy choice of copies"};
    outcome.schedule = plan.schedule;
    return outcome;
  }

  const JointGraph& graph_;
  const OffloadTerms& terms_;
  const OffloadRule rule_;
  const RunProblem problem_;
  const Runs order_;
  Simulator simulator_;
  size_t moment_ = 0;
  int64_t own_peak_ = 0;
  std::vector<int32_t> movable_;    // As many as the link can carry, in the rule's order.
  std::vector<int32_t> droppable_;  // Cheapest first.
  Plan least_;
};

}  // namespace

Result<std::unique_ptr<PreparedRunSolver>> PrepareOffloadEarliest(const JointGraph& graph,
                                                                  const OffloadTerms& terms,
                                                                  const SolveLimits&) {
  return std::unique_ptr<PreparedRunSolver>(
      new GreedyOffload(graph, terms, OffloadRule::kEarliest));
}

Result<std::unique_ptr<PreparedRunSolver>> PrepareOffloadLargest(const JointGraph& graph,
                                                                 const OffloadTerms& terms,
                                                                 const SolveLimits&) {
  return std::unique_ptr<PreparedRunSolver>(new GreedyOffload(graph, terms, OffloadRule::kLargest));
}

Result<std::unique_ptr<PreparedRunSolver>> PrepareOffloadCostliest(const JointGraph& graph,
                                                                   const OffloadTerms& terms,
                                                                   const SolveLimits&) {
  return std::unique_ptr<PreparedRunSolver>(
      new GreedyOffload(graph, terms, OffloadRule::kCostliest));
}

}  // namespace ckplan
