// What algorithms are asked that plan joint graphs, and what they answer: between the request of
// joint_planner.h and its plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/base/units.h"
#include "lib/joint/expand.h"
#include "lib/joint/joint_graph.h"
#include "lib/joint/run_problem.h"
#include "lib/joint/run_rules.h"
#include "lib/plan/certificate.h"
#include "lib/plan/plan.h"
#include "lib/plan/request.h"

namespace ckplan {

// What an algorithm is asked for.
struct JointProblem {
  const JointGraph& graph;  // What must run once may not repeat in it.
  const PlanRequest& request;
  std::optional<Bytes> budget = std::nullopt;  // On the peak, without constants. None: no limit.
  bool wants_least_peak = false;  // Asks for the plan of least peak; `budget` is none then.
  // Operations whose values are to be recomputed, and the rules that say so; else empty and null.
  IdVector<OpId, bool> is_recomputed = {};
  const RunRules* rules = nullptr;
  // Set where the graph is the step of a model, for algorithms that decide on the model's nodes.
  const ForwardView* forward = nullptr;

  Runs Obeying(const Runs& runs) const {
    return rules == nullptr ? runs : MadeToObey(*rules, runs);
  }
};

struct JointOutcome {
  std::vector<OpId> runs;  // A plan of the graph; the caller checks whether it fits the budget.
  bool is_optimal = false;
  std::string guarantee;
  std::optional<Cost> lower_bound;  // On the overhead; none if no more than the obvious is known.
  std::optional<Certificate> certificate = {};  // Without the gaps.
  std::vector<CurvePoint> curve = {};           // Without a budget: what was found on the way.
  std::string note = {};                        // What a refusal adds, if the budget is not met.
  // Set by algorithms that decide on the nodes of a forward graph.
  std::optional<PaperFigures> paper = {};
  std::optional<KnobSetting> setting = {};
  Objective objective = Objective::kTime;
};

// What the budget of the request covers beside the peak: nothing, or all that no plan changes.
Bytes ConstantsInBudget(const JointGraph& graph, const PlanRequest& request);

}  // namespace ckplan
