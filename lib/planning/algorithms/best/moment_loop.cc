#include "lib/planning/algorithms/best/moment_loop.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "lib/planning/algorithms/best/moment_program.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/timeline.h"

namespace ckplan {

namespace {

// Consecutive steps above the budget, and the highest of them.
struct Stretch {
  int64_t top = 0;
  std::optional<size_t> step;
};

}  // namespace

int64_t StepView::Peak() const { return *std::max_element(bytes.begin(), bytes.end()); }

StepView ViewSteps(const JointGraph& graph, std::span<const OpId> order, const Runs& runs) {
  StepView view;
  for (const Bytes bytes : BuildTimeline(graph, runs).step_bytes) {
    view.bytes.push_back(bytes.count());
  }
  size_t next = 0;
  for (const OpId op : runs) {
    view.position.push_back(static_cast<int32_t>(next));
    if (next < order.size() && order[next] == op) ++next;
  }
  return view;
}

std::optional<size_t> TopAbove(const StepView& view, int64_t budget,
                               const std::function<bool(size_t)>& may_take) {
  Stretch highest;
  Stretch stretch;
  const auto end_stretch = [&] {
    if (stretch.step && stretch.top > highest.top) highest = stretch;
    stretch = {};
  };
  for (size_t k = 0; k < view.bytes.size(); ++k) {
    if (view.bytes[k] <= budget) {
      end_stretch();
      continue;
    }
    stretch.top = std::max(stretch.top, view.bytes[k]);
    const bool is_higher = !stretch.step || view.bytes[k] > view.bytes[*stretch.step];
    if (is_higher && may_take(k)) stretch.step = k;
  }
  end_stretch();
  return highest.step;
}

namespace {

// Most programs except the last have plans that exceed the budget. Abandon them once the gap is
// below one part in this many of the cost of running everything once: proving that no slightly
// better plan exists can take most of the work.
constexpr int64_t kDoubtfulParts = 5'000;

// A plan that exceeds the budget by at most one part in kSlightParts is solved again with less
// memory, for one part in kLessRoomParts of the work. All of these together get one part in
// kAllLessRoomParts.
constexpr int64_t kSlightParts = 20;
constexpr int64_t kLessRoomParts = 4;
constexpr int64_t kAllLessRoomParts = 2;

class MomentLoop {
 public:
  MomentLoop(const JointGraph& graph, const RunProblem& problem, std::span<const OpId> order,
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
    AddMoment(ViewSteps(graph_, order_, once));
    if (moments().empty()) {
      KeepIfCheaper(once);
      return std::move(outcome_);
    }
    for (int64_t round = 0; round < limits_.rounds && !IsDone(); ++round) {
      CKPLAN_ASSIGN_OR_RETURN(const bool may_go_on, Round());
      if (!may_go_on) break;
    }
    for (const int32_t position : moments()) {
      outcome_.moments.push_back(order_[static_cast<size_t>(position)]);
    }
    return std::move(outcome_);
  }

 private:
  bool IsDone() const { return IsSettled() || WorkLeft() <= 0; }

  // Work on solves with less memory does not count.
  int64_t WorkLeft() const { return limits_.work - (outcome_.work - less_room_work_); }

  // Tells whether nothing is left to find.
  bool IsSettled() const {
    const int64_t overhead = outcome_.cost - once_;
    const bool is_optimal = outcome_.runs && overhead <= outcome_.lower_bound;
    const bool is_excluded = limits_.enough && outcome_.lower_bound > *limits_.enough;
    return outcome_.is_infeasible || is_optimal || is_excluded || HasEnough();
  }

  bool HasEnough() const {
    return limits_.enough && outcome_.runs && outcome_.cost - once_ <= *limits_.enough;
  }

  // Tells whether another round may find a better plan.
  Result<bool> Round() {
    const bool is_for_budget = target_ == budget_;
    const ProgramLimits<MomentPlan> limits = {
        WorkLeft(), [&](const MomentPlan& plan) { return Fits(ExpandPlan(plan)); },
        once_ / kDoubtfulParts, [&](const MomentPlan& plan) { return KeepIfFits(plan); },
        is_for_budget ? limits_.enough : std::nullopt};
    CKPLAN_ASSIGN_OR_RETURN(const MomentOutcome solved,
                            SolveMoments(problem_, order_, charged_, target_, limits));
    outcome_.work += solved.work;
    if (solved.is_infeasible) {
      outcome_.is_infeasible = is_for_budget;
      return false;
    }
    if (is_for_budget) outcome_.lower_bound = std::max(outcome_.lower_bound, solved.lower_bound);
    if (!solved.plan) return false;
    Runs runs = ExpandPlan(*solved.plan);
    const StepView view = ViewSteps(graph_, order_, runs);
    const int64_t peak = view.Peak();
    if (peak <= budget_) {
      KeepIfCheaper(std::move(runs));
      return false;
    }
    const int64_t gap = solved.plan_cost - solved.lower_bound;
    const bool is_solved = is_for_budget && gap <= once_ / kDoubtfulParts;
    if (is_solved) {
      CKPLAN_RETURN_IF_ERROR(SolveWithLessRoom(peak - budget_));
      if (IsSettled()) return false;
    }
    // If everything is charged already, the excess comes from several reruns in one interval, or
    // from rounding. Less memory everywhere compensates for it.
    if (!AddMoment(view) && !ChargeRerun(view, runs)) target_ -= peak - budget_;
    if (is_solved || !has_solved_) outcome_.exceeding = std::move(runs);
    has_solved_ |= is_solved;
    return true;
  }

  // Solves the program again with less and less memory until a plan fits. The current plan exceeds
  // the budget by `excess`.
  Result<Done> SolveWithLessRoom(int64_t excess) {
    if (excess > budget_ / kSlightParts) return Done{};
    const int64_t limit =
        std::min(less_room_work_ + limits_.work / kLessRoomParts, limits_.work / kAllLessRoomParts);
    for (int64_t target = budget_; excess > 0 && less_room_work_ < limit;) {
      target -= excess;
      const ProgramLimits<MomentPlan> limits = {
          limit - less_room_work_, SkipsProof, once_ / kDoubtfulParts,
          [&](const MomentPlan& plan) { return KeepIfFits(plan); }, limits_.enough};
      CKPLAN_ASSIGN_OR_RETURN(const MomentOutcome solved,
                              SolveMoments(problem_, order_, charged_, target, limits));
      outcome_.work += solved.work;
      less_room_work_ += solved.work;
      if (!solved.plan || (limits_.enough && solved.lower_bound > *limits_.enough)) break;
      Runs runs = ExpandPlan(*solved.plan);
      excess = ViewSteps(graph_, order_, runs).Peak() - budget_;
      if (excess <= 0) KeepIfCheaper(std::move(runs));
    }
    return Done{};
  }

  static bool SkipsProof(const MomentPlan& /*plan*/) { return false; }

  // Keeps the plan if it fits. Returns whether the best plan is good enough.
  bool KeepIfFits(const MomentPlan& plan) {
    Runs runs = ExpandPlan(plan);
    if (Fits(runs)) KeepIfCheaper(std::move(runs));
    return HasEnough();
  }

  bool Fits(const Runs& runs) const { return ViewSteps(graph_, order_, runs).Peak() <= budget_; }

  Runs ExpandPlan(const MomentPlan& plan) const {
    return ExpandMoments(problem_, order_, moments(), plan);
  }

  void KeepIfCheaper(Runs runs) {
    const int64_t cost = Simulator(graph_).Run(runs).value().cost.count();
    if (outcome_.runs && outcome_.cost <= cost) return;
    outcome_.cost = cost;
    outcome_.runs = std::move(runs);
  }

  // Returns whether it found a new moment.
  bool AddMoment(const StepView& view) {
    const std::optional<size_t> top =
        TopAbove(view, budget_, [&](size_t step) { return IsNewMoment(view.position[step]); });
    if (top) AddMoment(view.position[*top]);
    return top.has_value();
  }

  // Handles steps above the budget that all lie just before a moment. The first run before such a
  // step becomes a moment; if it already is one, charges the rerun at the step. Returns whether
  // this added anything.
  bool ChargeRerun(const StepView& view, const Runs& runs) {
    const auto charge_at = [&](size_t step) {
      return ChargedRerun{view.position[step] - 1, runs[step]};
    };
    const std::optional<size_t> top = TopAbove(view, budget_, [&](size_t step) {
      const ChargedRerun rerun = charge_at(step);
      const auto next = static_cast<size_t>(view.position[step]);
      const bool is_first_run = next < order_.size() && order_[next] == rerun.op;
      return !is_first_run && rerun.moment >= 0 && (IsNewMoment(rerun.moment) || IsNewRerun(rerun));
    });
    if (!top) return false;
    const ChargedRerun rerun = charge_at(*top);
    if (IsNewMoment(rerun.moment)) {
      AddMoment(rerun.moment);
    } else {
      charged_.reruns.push_back(rerun);
    }
    return true;
  }

  bool IsNewMoment(int32_t position) const {
    return position < static_cast<int32_t>(order_.size()) &&
           !std::binary_search(moments().begin(), moments().end(), position);
  }

  bool IsNewRerun(const ChargedRerun& rerun) const {
    return std::find(charged_.reruns.begin(), charged_.reruns.end(), rerun) ==
           charged_.reruns.end();
  }

  void AddMoment(int32_t position) {
    std::vector<int32_t>& moments = charged_.moments;
    moments.insert(std::upper_bound(moments.begin(), moments.end(), position), position);
  }

  const std::vector<int32_t>& moments() const { return charged_.moments; }

  const JointGraph& graph_;
  const RunProblem& problem_;
  const std::span<const OpId> order_;
  const int64_t budget_;
  const LoopLimits limits_;
  int64_t target_;    // The program's budget; see Round.
  int64_t once_ = 0;  // The cost of running the order once.
  ChargedSteps charged_;
  bool has_solved_ = false;  // Solved a program, at least nearly, whose plan is too large.
  int64_t less_room_work_ = 0;
  LoopOutcome outcome_;
};

}  // namespace

Result<LoopOutcome> SolveMomentLoop(const JointGraph& graph, const RunProblem& problem,
                                    std::span<const OpId> order, int64_t budget,
                                    const LoopLimits& limits) {
  return MomentLoop(graph, problem, order, budget, limits).Run();
}

}  // namespace ckplan
