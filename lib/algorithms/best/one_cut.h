// One order, one moment: what to keep in memory across it, and what to run again after it, by least
// cuts. docs/bounds.md states the program and why its Lagrangian bounds every plan of the order.
//
//   source ──inf──▶ N_u ──λ·bytes──▶ R_m ──cost──▶ sink      u is needed: kept, or its maker m
//   reruns
//                   N_w ◀──inf───── R_m                      then what m reads is needed as well
//
// A value made before the moment is needed if an operation at or after the moment reads it, or if
// it is a result. What the operation of the moment itself reads is in memory, and so is what is
// needed and cannot be made again.
//
// Cost  7 to 16 least cuts, one for each multiplier that a secant tries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lib/joint/run_problem.h"

namespace ckplan {

struct OneCut {
  // If not, no plan whose first runs come in this order fits the budget: each exceeds it by so many
  // bytes at least. The rest is empty then.
  bool is_feasible = true;
  int64_t missing_bytes = 0;
  // Such plans cost at least this beyond the operations of the order once each.
  int64_t added_cost = 0;
  // By value: kept across the moment, in the two cuts on either side of the best multiplier. The
  // values of `fitting` leave room for the moment's operation; those of `cheaper` are more, and
  // need fewer reruns. Both are equal where everything that is needed fits.
  std::vector<bool> fitting;
  std::vector<bool> cheaper;
};

// `order` holds operations once each, after what they need, `moment` is a position in it. Bytes and
// costs of the problem have the limits of a joint graph, 2^56 and 2^52.
OneCut CutAtMoment(const RunProblem& problem, std::span<const OpId> order, size_t moment,
                   int64_t budget);

// The order; after the moment what was made before it and is not kept is made again right before
// its next reader, each operation at most once more. What cannot be made again counts as kept.
Runs ExpandKept(const RunProblem& problem, std::span<const OpId> order, size_t moment,
                const std::vector<bool>& kept);

struct PlanMeasures {
  int64_t peak = 0;  // Bytes.
  int64_t cost = 0;  // Of all runs.
};
using MeasurePlan = std::function<PlanMeasures(const Runs&)>;

// From the fitting values to a plan that keeps more of the cheaper ones: they are tried, those that
// save most for their bytes first, and stay if the plan is better for it; all at once, then halves
// of those that are left, and in the end one by one. A plan is better if its
// peak is closer to the budget from above, or if both fit and it costs less. At most `max_trials`
// plans are measured, the first of them that of the fitting values alone.
Runs FillWithCheaper(const RunProblem& problem, std::span<const OpId> order, size_t moment,
                     int64_t budget, const OneCut& cut, const MeasurePlan& measure,
                     int64_t max_trials);

}  // namespace ckplan
