// The problem posed to an algorithm, and its answer. The planner (planner.h) turns a request into a
// problem, and an answer into a plan.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/plan/balance.h"
#include "lib/planning/plan/certificate.h"
#include "lib/planning/plan/curve_point.h"
#include "lib/planning/plan/objective.h"
#include "lib/planning/plan/paper_figures.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/plan/run_solver.h"
#include "lib/problem/runs/run_rules.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

struct PlanProblem {
  TrainingStep step;  // In a joint graph, operations that must run once may not repeat.
  const PlanRequest& request;
  std::optional<Bytes> budget = std::nullopt;  // On the peak, without constants. Unset: no limit.
  bool minimizes_peak = false;                 // Find the lowest peak; `budget` is unset.
  // If set, find the plan with the lowest peak that adds at most this; `budget` is unset.
  std::optional<Cost> most_added = std::nullopt;
  // If set, find the plan with the best balance; `budget` is unset.
  std::optional<Balance> balance = std::nullopt;
  // For a joint graph: the operations that must be recomputed, and the rules for them. Empty and
  // null without constraints.
  IdVector<OpId, bool> is_recomputed = {};
  const RunRules* rules = nullptr;
  // Null if every value stays on the device; then step.link() is null, too.
  const OffloadTerms* offload = nullptr;

  // Tells whether to minimize the peak instead of only limiting it.
  bool optimizes_peak() const { return minimizes_peak || most_added || balance; }
  bool has_budget() const { return budget || optimizes_peak(); }
  bool Fits(Bytes peak, Cost overhead) const {
    return (!budget || peak <= *budget) && (!most_added || overhead <= *most_added);
  }
  // Tells whether `a` is better than `b`, if both fit.
  bool IsBetter(const CurvePoint& a, const CurvePoint& b) const {
    if (balance) return balance->IsBetter(a, b);
    return optimizes_peak() ? std::pair(a.peak, a.overhead) < std::pair(b.peak, b.overhead)
                            : std::pair(a.overhead, a.peak) < std::pair(b.overhead, b.peak);
  }
  Runs Constrain(const Runs& runs) const {
    return rules == nullptr ? runs : ConstrainedTo(*rules, runs);
  }
};

struct Answer {
  // A plan of the step. It may not fit. It has transfers only if the problem has `offload`, and
  // stays within those terms.
  Schedule schedule;
  bool is_optimal = false;
  std::string guarantee;
  IdVector<NodeId, int32_t> segment_of = {};    // Empty: one segment, or none.
  std::optional<Cost> lower_bound = {};         // On the overhead; unset if trivial.
  std::optional<Certificate> certificate = {};  // Its gaps are unset.
  std::vector<CurvePoint> curve = {};           // Without a budget: the curve found on the way.
  std::string note = {};  // Added to the error if the schedule exceeds the budget.
  // Set by algorithms that plan the nodes of a forward graph.
  std::optional<PaperFigures> paper = {};
  std::optional<KnobSetting> setting = {};
  Objective objective = Objective::kTime;
};

// The outcome of a search for a plan within a budget.
struct WithinBudget {
  std::optional<Answer> answer;  // Unset if no plan was found.
  PeakBound least_peak;          // No plan has a lower peak.
};

}  // namespace ckplan
