#include "lib/planning/algorithms/best/any_order_loop.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "lib/planning/algorithms/best/any_order_program.h"
#include "lib/planning/algorithms/best/kinship.h"
#include "lib/planning/algorithms/best/step_view.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

class AnyOrderLoop {
 public:
  AnyOrderLoop(const JointGraph& graph, const RunProblem& problem, std::span<const OpId> order,
               std::span<const OpId> moments, int64_t budget, const LoopLimits& limits)
      : graph_(graph),
        problem_(problem),
        order_(order),
        budget_(budget),
        limits_(limits),
        chain_(LongestChain(problem, moments)) {
    for (const OpId op : order) once_ += problem.cost[static_cast<size_t>(op.index())];
    FindComparable();
  }

  Result<LoopOutcome> Run() && {
    for (int64_t round = 0; round < limits_.rounds && !IsDone(); ++round) {
      CKPLAN_ASSIGN_OR_RETURN(const bool may_go_on, Round());
      if (!may_go_on) break;
    }
    outcome_.moments = chain_;
    return std::move(outcome_);
  }

 private:
  bool IsDone() const {
    const bool is_optimal = outcome_.runs && outcome_.cost - once_ <= outcome_.lower_bound;
    return is_optimal || chain_.empty() || outcome_.work >= limits_.work;
  }

  // Returns whether another round may give a better bound.
  Result<bool> Round() {
    CKPLAN_ASSIGN_OR_RETURN(
        const AnyOrderOutcome solved,
        SolveMomentsInAnyOrder(problem_, order_, chain_, budget_, limits_.work - outcome_.work));
    outcome_.work += solved.work;
    outcome_.is_infeasible = solved.is_infeasible;
    if (solved.is_infeasible) return false;
    outcome_.lower_bound = std::max(outcome_.lower_bound, solved.lower_bound);
    if (!solved.plan) return false;
    const AnyOrderPlan& plan = *solved.plan;
    const Runs runs = ExpandMoments(problem_, plan.order, plan.moments, plan.plan);
    const StepView view = ViewSteps(graph_, plan.order, runs);
    if (view.Peak() <= budget_) {
      KeepIfCheaper(runs);
      return false;
    }
    CKPLAN_ASSIGN_OR_RETURN(const std::vector<OpId> found, SolveInOrder(plan.order));
    return Extend(plan.order, view, found);
  }

  // Searches for a plan in the order that the program chose; returns the moments that this used.
  Result<std::vector<OpId>> SolveInOrder(const Runs& order) {
    LoopLimits limits = limits_;
    limits.work -= outcome_.work;
    CKPLAN_ASSIGN_OR_RETURN(const LoopOutcome loop,
                            SolveMomentLoop(graph_, problem_, order, budget_, limits));
    outcome_.work += loop.work;
    if (loop.runs) KeepIfCheaper(*loop.runs);
    return loop.moments;
  }

  void KeepIfCheaper(const Runs& runs) {
    const int64_t cost = Simulator(graph_).Run(runs).value().cost.count();
    if (outcome_.runs && outcome_.cost <= cost) return;
    outcome_.cost = cost;
    outcome_.runs = runs;
  }

  // Extends the chain by a moment where the expansion is above the budget, or else by a moment of
  // the loop in the chosen order. Returns whether it has grown.
  bool Extend(const Runs& order, const StepView& view, const std::vector<OpId>& found) {
    const auto op_at = [&](int32_t position) { return order[static_cast<size_t>(position)]; };
    const std::optional<size_t> top = TopAbove(view, budget_, [&](size_t step) {
      const int32_t position = view.position[step];
      return position < static_cast<int32_t>(order.size()) && IsComparable(op_at(position));
    });
    const auto other =
        std::find_if(found.begin(), found.end(), [&](OpId op) { return IsComparable(op); });
    if (!top && other == found.end()) return false;
    chain_.push_back(top ? op_at(view.position[*top]) : *other);
    // Ancestors have lower numbers than their descendants.
    std::sort(chain_.begin(), chain_.end());
    FindComparable();
    return true;
  }

  bool IsComparable(OpId op) const { return is_comparable_[static_cast<size_t>(op.index())]; }

  void FindComparable() {
    is_comparable_.assign(static_cast<size_t>(problem_.op_count), true);
    for (const OpId link : chain_) {
      const std::vector<bool> before = AncestorsOf(problem_, link.index());
      const std::vector<bool> after = DescendantsOf(problem_, link.index());
      for (size_t i = 0; i < before.size(); ++i) {
        is_comparable_[i] = is_comparable_[i] && (before[i] || after[i]);
      }
    }
  }

  const JointGraph& graph_;
  const RunProblem& problem_;
  const std::span<const OpId> order_;
  const int64_t budget_;
  const LoopLimits limits_;
  int64_t once_ = 0;  // The cost of running the order once.
  std::vector<OpId> chain_;
  // Operations outside the chain that are an ancestor or a descendant of each of its operations.
  std::vector<bool> is_comparable_;
  LoopOutcome outcome_;
};

}  // namespace

Result<LoopOutcome> SolveAnyOrderLoop(const JointGraph& graph, const RunProblem& problem,
                                      std::span<const OpId> order, std::span<const OpId> moments,
                                      int64_t budget, const LoopLimits& limits) {
  return AnyOrderLoop(graph, problem, order, moments, budget, limits).Run();
}

}  // namespace ckplan
