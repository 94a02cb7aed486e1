#include "lib/algorithms/best/moment_loop.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/algorithms/best/moment_program.h"
#include "lib/base/stop.h"
#include "lib/joint/run_timeline.h"
#include "lib/joint/simulate_runs.h"

namespace ckplan {
namespace {

// At most so many stretches above the budget give a moment in one round.
constexpr size_t kMaxNewMoments = 3;

// The memory at each step of some runs, and where in the order of first runs the step lies.
struct StepView {
  std::vector<int64_t> bytes;
  std::vector<int32_t> position;  // Of the first run at or behind the step.
};

class Loop {
 public:
  Loop(const JointGraph& graph, const RunProblem& problem, std::span<const OpId> order,
       int64_t budget, const LoopLimits& limits)
      : graph_(graph),
        problem_(problem),
        order_(order),
        budget_(budget),
        limits_(limits),
        target_(budget) {
    for (const OpId op : order) once_ += problem.cost[static_cast<size_t>(op.index())];
  }

  Result<LoopOutcome> Run() && {
    AddMoments(View(Runs(order_.begin(), order_.end())));
    if (moments_.empty()) {
      Take(Runs(order_.begin(), order_.end()));
      return std::move(outcome_);
    }
    for (int64_t round = 0; round < limits_.rounds && !IsDone(); ++round) {
      CKPLAN_ASSIGN_OR_RETURN(const bool may_go_on, Round());
      if (!may_go_on) break;
    }
    return std::move(outcome_);
  }

 private:
  bool IsDone() const {
    const bool is_optimal = outcome_.runs && outcome_.cost - once_ <= outcome_.lower_bound;
    return is_optimal || outcome_.simplex >= limits_.simplex;
  }

  // Whether another round may find a better plan.
  Result<bool> Round() {
    CKPLAN_ASSIGN_OR_RETURN(
        const MomentOutcome solved,
        SolveMoments(problem_, order_, moments_, target_, limits_.simplex - outcome_.simplex));
    outcome_.simplex += solved.simplex;
    const bool is_for_budget = target_ == budget_;
    if (solved.is_infeasible) {
      outcome_.is_infeasible = is_for_budget;
      return false;
    }
    if (is_for_budget) outcome_.lower_bound = std::max(outcome_.lower_bound, solved.lower_bound);
    if (!solved.plan) return false;
    Runs runs = ExpandMoments(problem_, order_, moments_, *solved.plan);
    const StepView view = View(runs);
    const int64_t peak = *std::max_element(view.bytes.begin(), view.bytes.end());
    if (peak <= budget_) {
      Take(std::move(runs));
      return false;
    }
    // What remains above the budget where every moment is one already is a matter of reruns between
    // moments, or of rounding: less room at the moments makes up for it.
    if (!AddMoments(view)) target_ -= peak - budget_;
    return true;
  }

  void Take(Runs runs) {
    const int64_t cost = RunSimulator(graph_).Run(runs).value().cost.count();
    if (outcome_.runs && outcome_.cost <= cost) return;
    outcome_.cost = cost;
    outcome_.runs = std::move(runs);
  }

  StepView View(const Runs& runs) const {
    StepView view;
    for (const Bytes bytes : BuildRunTimeline(graph_, runs).step_bytes) {
      view.bytes.push_back(bytes.count());
    }
    int32_t next = 0;
    for (const OpId op : runs) {
      view.position.push_back(next);
      const bool is_first_run =
          next < static_cast<int32_t>(order_.size()) && order_[static_cast<size_t>(next)] == op;
      if (is_first_run) ++next;
    }
    return view;
  }

  // A stretch of steps above the budget, and the highest of its first runs that is no moment yet.
  struct Stretch {
    int64_t top = 0;
    int32_t position = -1;
    int64_t bytes_there = 0;
  };

  // Whether a new moment was found.
  bool AddMoments(const StepView& view) {
    std::vector<Stretch> stretches;
    bool is_inside = false;
    for (size_t k = 0; k < view.bytes.size(); ++k) {
      const bool is_above = view.bytes[k] > budget_;
      if (is_above && !is_inside) stretches.emplace_back();
      is_inside = is_above;
      if (!is_above) continue;
      Stretch& stretch = stretches.back();
      stretch.top = std::max(stretch.top, view.bytes[k]);
      const int32_t position = view.position[k];
      const bool is_new = position < static_cast<int32_t>(order_.size()) &&
                          !std::binary_search(moments_.begin(), moments_.end(), position);
      if (is_new && view.bytes[k] > stretch.bytes_there) {
        stretch.bytes_there = view.bytes[k];
        stretch.position = position;
      }
    }
    std::erase_if(stretches, [](const Stretch& stretch) { return stretch.position < 0; });
    std::stable_sort(stretches.begin(), stretches.end(),
                     [](const Stretch& a, const Stretch& b) { return a.top > b.top; });
    if (stretches.size() > kMaxNewMoments) stretches.resize(kMaxNewMoments);
    for (const Stretch& stretch : stretches) moments_.push_back(stretch.position);
    std::sort(moments_.begin(), moments_.end());
    moments_.erase(std::unique(moments_.begin(), moments_.end()), moments_.end());
    return !stretches.empty();
  }

  const JointGraph& graph_;
  const RunProblem& problem_;
  const std::span<const OpId> order_;
  const int64_t budget_;
  const LoopLimits limits_;
  int64_t target_;    // The budget that the program is given; see Round.
  int64_t once_ = 0;  // What the order costs.
  std::vector<int32_t> moments_;
  LoopOutcome outcome_;
};

}  // namespace

Result<LoopOutcome> SolveMomentLoop(const JointGraph& graph, const RunProblem& problem,
                                    std::span<const OpId> order, int64_t budget,
                                    const LoopLimits& limits) {
  return Loop(graph, problem, order, budget, limits).Run();
}

}  // namespace ckplan
