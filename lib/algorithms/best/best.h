// The plan of least time within a budget that is known, with a proof of how far it could still
// fall.
//
// No paper: the parts are described, with their sources, in their own headers.
//   certificates    what no plan can go below
//   moment_loop     optimal plans of an order, by a mixed-integer program over moments
//   any_order_loop  the same where the order is free, with a bound for any order
//   one_cut         a bound and plans by minimum cuts, in milliseconds, without such a program
//   min_cut_order   orders of little memory, where the order is free
//   eviction        greedy plans in milliseconds
//   annealing       random search over sequences of runs
//
// Guarantee  the plan is valid and within the budget; it costs no less than `lower_bound` more than
//            running everything once, and is optimal where it costs just that.
// Cost       limited by `effort`, in work and not in time: the same request gives the same plan.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/algorithms/best/best_problem.h"
#include "lib/base/result.h"
#include "lib/joint/joint_graph.h"
#include "lib/joint/run_problem.h"
#include "lib/plan/certificate.h"

namespace ckplan {

// What a search may do, so that the same request gives the same plan on any machine.
struct BestWork {
  int64_t programs = 0;    // Of the programs in one order (MipLimits::work).
  int64_t any_order = 0;   // The same, in any order.
  int64_t rounds = 0;      // Of the loops over moments.
  int64_t moves = 0;       // Of the annealing.
  int64_t cut_trials = 0;  // Plans measured around one cut.
  int orders = 0;          // Searches for an order of little memory.
  // A graph of fewer operations gets as much less of the programs and the annealing, though no less
  // than there is of them for less effort.
  int64_t full_ops = 250;
};

// Work that means about 0.3, 3 and 30 seconds for 500 operations; and less than a tenth of a
// second, for each of the plans that are looked at where no budget is given.
inline constexpr BestWork kGlanceWork = {800'000, 0, 6, 15'000, 50, 2};
inline constexpr BestWork kQuickWork = {4'000'000, 0, 12, 60'000, 100, 4};
inline constexpr BestWork kNormalWork = {28'000'000, 12'000'000, 40, 2'000'000, 300, 32};
inline constexpr BestWork kThoroughWork = {100'000'000, 40'000'000, 100, 10'000'000,
                                           1'000,       32,         500};

struct BestOutcome;

struct BestOptions {
  int64_t budget = 0;  // Bytes: of the peak.
  BestWork work = kNormalWork;
  bool is_order_free = true;  // Whether first runs may be in another order than the graph's own.
  // If set, the search ends with the first plan whose overhead is no higher, or as soon as it is
  // proven that there is none.
  std::optional<int64_t> enough = std::nullopt;
  std::vector<Runs> starts;  // Plans that are known, such as those of other algorithms.
  // What a search with less work found for the same graph and the same of these options. Its plan
  // is a start, and its proofs hold: so more work never gives less.
  const BestOutcome* before = nullptr;
};

struct BestOutcome {
  std::optional<Runs> runs;  // Nothing: no plan within the budget was found.
  int64_t overhead = 0;      // Of `runs`, beyond running everything once.
  int64_t lower_bound = 0;   // On the overhead.
  OverheadProof proof = OverheadProof::kRunOnce;
  BoundScope scope = BoundScope::kAnyOrder;  // Of that bound.
  int64_t any_order_bound = 0;               // On the overhead of plans in any order.
  OverheadProof any_order_proof = OverheadProof::kRunOnce;
  bool is_optimal = false;     // Within the scope.
  PeakBound least_peak;        // Above the budget where `is_infeasible`.
  bool is_infeasible = false;  // Proven: nothing within the scope of `least_peak` fits.
  std::string_view part;       // Which part found the plan: "moments".
  int64_t program_work = 0;    // That this search has done in programs (MipLimits::work).
  // What a search for a bound in any order begins with: the moments of the plan, and those that the
  // bound was proven with.
  std::vector<OpId> moments;
  std::vector<OpId> proof_moments;
};

// Heeds a stop (lib/base/stop.h): with the best so far, if there is one. What it finds out about
// the graph stays in `problem`, for searches with other budgets.
Result<BestOutcome> SolveBest(BestProblem* problem, const BestOptions& options);
// For one search alone.
Result<BestOutcome> SolveBest(const JointGraph& graph, const BestOptions& options);

}  // namespace ckplan
