// From a request to a checked plan: finds the algorithm, turns its knob until the simulated peak
// fits the budget, and lowers, simulates, places and checks the best plan found.
#pragma once

#include <optional>
#include <variant>

#include "lib/base/result.h"
#include "lib/graph/layer_fold.h"
#include "lib/plan/plan.h"
#include "lib/plan/solver.h"
#include "lib/planner/registry.h"

namespace ckplan {

// A budget as people give it.
struct BudgetRequest {
  enum class Kind {
    kNone,     // None: the paper's own choice of the knob.
    kBytes,    // At most `bytes`.
    kPercent,  // At most `percent` of keep-all's peak in the graph's own order.
    kMin,      // The least that the algorithm reaches.
  };
  Kind kind = Kind::kNone;
  Bytes bytes;
  double percent = 0;
};

struct PlannerRequest {
  std::string algorithm = std::string(kDefaultAlgorithm);
  Objective objective = Objective::kTime;
  Granularity granularity = Granularity::kNode;  // What the algorithm decides on.
  BudgetRequest budget;                          // On the simulated peak.
  BudgetRequest paper_budget;       // On the algorithm's own objective; kNone, kBytes or kMin.
  bool includes_constants = false;  // --budget-total: the budget covers the constants too.
  Optimizer optimizer = Optimizer::kSgd;
  bool uses_liveness = true;  // Else frees are explicit: lower_without_liveness.h.
};

// The plan's request (algorithm, objective, budgets in bytes, optimizer), figures, decisions and
// schedule are filled in; cost model, autograd and model identity are the caller's to add.
// kInfeasible: names the least feasible budget and the step that needs it. kUsage: unknown
// algorithm, an objective or paper budget that the algorithm does not have.
Result<Plan> MakePlan(const TensorGraph& graph, const PlannerRequest& request,
                      const SolveLimits& limits);

}  // namespace ckplan
