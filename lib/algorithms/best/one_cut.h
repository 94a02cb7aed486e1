// One order, one moment: minimum cuts decide which values to keep in memory across it, and which
// operations to run again after it. docs/bounds.md states the program and why its Lagrangian bounds
// every plan of the order.
//
//   source ──inf──▶ N_u ──λ·bytes──▶ R_m ──cost──▶ sink    u is needed: kept, or its maker m reruns
//                   N_w ◀──inf───── R_m                    then m's reads are needed, too
//
// A value made before the moment is needed if an operation at or after the moment reads it, or if
// it is a result. Values that the moment's own operation reads are in memory, and so are needed
// values that cannot be made again.
//
// Cost  7 to 16 minimum cuts, one for each multiplier that the secant method tries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lib/runs/run_problem.h"

namespace ckplan {

struct OneCut {
  // False: no plan whose first runs have this order fits the budget. Each exceeds it by at least
  // `missing_bytes`, and the other members are empty.
  bool is_feasible = true;
  int64_t missing_bytes = 0;
  // A lower bound of the cost of such plans, beyond running the operations of the order once each.
  int64_t added_cost = 0;
  // Per value: kept across the moment, in the two cuts on either side of the best multiplier. The
  // values of `fitting` leave room for the moment's operation; those of `cheaper` are more, and
  // need fewer reruns. Both are equal if everything needed fits.
  std::vector<bool> fitting;
  std::vector<bool> cheaper;
};

// `order` has operations once each, after those they need; `moment` is a position in it. Bytes and
// costs of the problem are within the limits of a joint graph, 2^56 and 2^52.
OneCut CutAtMoment(const RunProblem& problem, std::span<const OpId> order, size_t moment,
                   int64_t budget);

// Returns the order with reruns. After the moment, a value made before it and not kept is made
// again right before its next reader, each operation at most once more. A value that cannot be made
// again counts as kept.
Runs ExpandKept(const RunProblem& problem, std::span<const OpId> order, size_t moment,
                const std::vector<bool>& kept);

struct PlanMeasures {
  int64_t peak = 0;  // In bytes.
  int64_t cost = 0;  // The cost of all runs.
};
using MeasurePlan = std::function<PlanMeasures(const Runs&)>;

// Extends the fitting values to a plan that keeps more of the cheaper ones. Candidates are tried in
// order of saving per byte, and stay if they improve the plan: first all at once, then halves of
// the remaining ones, finally one by one. A plan is better if its peak is closer to the budget from
// above, or if both fit and it costs less. At most `max_trials` plans are measured; the first is
// that of the fitting values alone.
Runs FillWithCheaper(const RunProblem& problem, std::span<const OpId> order, size_t moment,
                     int64_t budget, const OneCut& cut, const MeasurePlan& measure,
                     int64_t max_trials);

}  // namespace ckplan
