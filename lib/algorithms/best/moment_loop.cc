#include "lib/algorithms/best/moment_loop.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/algorithms/best/moment_program.h"
#include "lib/algorithms/best/step_view.h"
#include "lib/joint/simulate_runs.h"

namespace ckplan {
namespace {

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
    const Runs once(order_.begin(), order_.end());
    AddMoments(ViewSteps(graph_, order_, once));
    if (moments_.empty()) {
      Take(once);
      return std::move(outcome_);
    }
    for (int64_t round = 0; round < limits_.rounds && !IsDone(); ++round) {
      CKPLAN_ASSIGN_OR_RETURN(const bool may_go_on, Round());
      if (!may_go_on) break;
    }
    for (const int32_t position : moments_) {
      outcome_.moments.push_back(order_[static_cast<size_t>(position)]);
    }
    return std::move(outcome_);
  }

 private:
  bool IsDone() const {
    const int64_t overhead = outcome_.cost - once_;
    const bool is_optimal = outcome_.runs && overhead <= outcome_.lower_bound;
    const bool is_settled = limits_.enough && (outcome_.lower_bound > *limits_.enough ||
                                               (outcome_.runs && overhead <= *limits_.enough));
    return is_optimal || is_settled || outcome_.simplex >= limits_.simplex;
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
    const StepView view = ViewSteps(graph_, order_, runs);
    const int64_t peak = view.Peak();
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

  // Whether a new moment was found.
  bool AddMoments(const StepView& view) {
    const auto is_new = [&](int32_t position) {
      return position < static_cast<int32_t>(order_.size()) &&
             !std::binary_search(moments_.begin(), moments_.end(), position);
    };
    const std::vector<int32_t> tops = TopsAbove(view, budget_, is_new);
    moments_.insert(moments_.end(), tops.begin(), tops.end());
    std::sort(moments_.begin(), moments_.end());
    moments_.erase(std::unique(moments_.begin(), moments_.end()), moments_.end());
    return !tops.empty();
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
