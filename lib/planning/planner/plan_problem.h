// What an algorithm is asked, and what it answers. The planner (planner.h) makes the problem from a
// request, and the plan from the answer.
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
  std::optional<Bytes> budget = std::nullopt;  // On the peak, without constants. None: no limit.
  bool wants_least_peak = false;  // Asks for the plan of least peak; `budget` is none then.
  // Asks for the plan of least peak that adds at most this; `budget` is none then.
  std::optional<Cost> most_added = std::nullopt;
  // Asks for the plan that this prefers; `budget` is none then.
  std::optional<Balance> balance = std::nullopt;
  // For a joint graph: the operations whose values are to be recomputed, and the rules that say so.
  // Empty and null if there are none.
  IdVector<OpId, bool> is_recomputed = {};
  const RunRules* rules = nullptr;
  // Null if every value stays on the device: step.link() is null then as well.
  const OffloadTerms* offload = nullptr;

  // Whether the peak is a part of what is asked, and not only a limit.
  bool seeks_peak() const { return wants_least_peak || most_added || balance; }
  bool has_budget() const { return budget || seeks_peak(); }
  bool Fits(Bytes peak, Cost overhead) const {
    return (!budget || peak <= *budget) && (!most_added || overhead <= *most_added);
  }
  // Whether `a` answers better than `b`, where both fit.
  bool IsBetter(const CurvePoint& a, const CurvePoint& b) const {
    if (balance) return balance->IsBetter(a, b);
    return seeks_peak() ? std::pair(a.peak, a.overhead) < std::pair(b.peak, b.overhead)
                        : std::pair(a.overhead, a.peak) < std::pair(b.overhead, b.peak);
  }
  Runs Constrained(const Runs& runs) const {
    return rules == nullptr ? runs : ConstrainedTo(*rules, runs);
  }
};

struct Answer {
  // A plan of the step; the caller checks whether it fits. It has transfers only if the problem has
  // `offload`, and then keeps to its terms.
  Schedule schedule;
  bool is_optimal = false;
  std::string guarantee;
  IdVector<NodeId, int32_t> segment_of = {};    // Empty: there is one segment, or none.
  std::optional<Cost> lower_bound = {};         // On the overhead, if more than the obvious.
  std::optional<Certificate> certificate = {};  // Without the gaps.
  std::vector<CurvePoint> curve = {};           // Without a budget: what was found on the way.
  std::string note = {};  // What a refusal adds if the schedule exceeds the budget.
  // Set by algorithms that decide on the nodes of a forward graph.
  std::optional<PaperFigures> paper = {};
  std::optional<KnobSetting> setting = {};
  Objective objective = Objective::kTime;
};

}  // namespace ckplan
