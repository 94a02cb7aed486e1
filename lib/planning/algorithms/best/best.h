// Finds a fast plan within a budget, and a proven lower bound on the time of any plan.
//
// The curve comes first. The other parts run only if the gap between its plan and its bound is
// larger than the effort tolerates.
//
// No paper: the headers of the parts describe them and cite their sources.
//   certificates    lower bounds for any plan
//   moment_loop     optimal plans in one order, by a mixed-integer program over moments
//   any_order       the same for a free order, with a bound for any order
//   curve           bounds and plans for all budgets in milliseconds, by minimum cuts and evictions
//   min_cut_order   orders with low peaks, for a free order
//   annealing       random search over sequences of runs
//
// Guarantee  the plan is valid and fits the budget. Its overhead over running everything once is at
//            least `lower_bound`; if both are equal, the plan is optimal.
// Cost       limited by `effort`, as work and not as time: the same request gives the same plan.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "lib/base/result.h"
#include "lib/planning/algorithms/best/certificates.h"
#include "lib/planning/algorithms/best/curve/trade_off_curve.h"
#include "lib/planning/algorithms/best/min_cut_order.h"
#include "lib/planning/plan/certificate.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/runs/run_problem.h"
#include "lib/problem/runs/run_rules.h"

namespace ckplan {

// The data shared by all searches for plans of a graph, for any budget.
class TradeOffCurve;

// Computes each part on first use. A stop (lib/base/stop.h) keeps the completed parts.
class BestProblem {
 public:
  // Keeps a reference to `graph`. `is_recomputed` marks operations whose values must not be kept
  // for the backward pass (lib/problem/runs/run_rules.h); empty if there are none.
  explicit BestProblem(const JointGraph& graph, const IdVector<OpId, bool>& is_recomputed = {},
                       const OtherMicroBatches& others = {});
  ~BestProblem();
  BestProblem(const BestProblem&) = delete;
  BestProblem& operator=(const BestProblem&) = delete;

  const JointGraph& graph() const { return graph_; }
  const RunProblem& flat() const { return flat_; }
  // The rules that plans must obey; null if no values must be recomputed.
  const RunRules* rules() const { return rules_ ? &*rules_ : nullptr; }
  // Returns the cost of the reruns that every plan must have. In unforced_graph() these operations
  // cost nothing, so a bound there plus this cost is a bound here.
  int64_t forced_cost() const { return forced_cost_; }
  const JointGraph& unforced_graph() const { return unforced_ ? *unforced_ : graph_; }
  const RunProblem& unforced() const { return unforced_flat_ ? *unforced_flat_ : flat_; }
  const Certificates& certificates();
  // Returns the order with the lowest peak that this many searches find
  // (MinCutOrderOptions::starts).
  const OrderWithPeak& MinCutOrder(int starts);
  // The curve of the graph's own order, with all plans and bounds found so far.
  TradeOffCurve* curve();

 private:
  const JointGraph& graph_;
  const RunProblem flat_;
  std::optional<RunRules> rules_;
  int64_t forced_cost_ = 0;
  std::optional<JointGraph> unforced_;
  std::optional<RunProblem> unforced_flat_;
  std::optional<Certificates> certificates_;
  std::map<int, OrderWithPeak> min_cut_orders_;  // By `starts`.
  std::unique_ptr<TradeOffCurve> curve_;
};

// Limits on a search's work. Unlike time limits, they give the same plan on every machine.
struct BestWork {
  int64_t programs = 0;   // For programs in one order (MipLimits::work).
  int64_t any_order = 0;  // For programs in any order (MipLimits::work).
  int64_t rounds = 0;     // Rounds of the loops over moments.
  int64_t moves = 0;      // Annealing moves.
  CurveWork curve = kQuickCurve;
  int orders = 0;  // Searches for an order with a low peak.
  // Smaller graphs get proportionally less work for programs and annealing, but at least that of
  // the next lower effort.
  int64_t full_ops = 250;
};

// About 0.3, 3 and 30 seconds for 500 operations. kBriefWork is for each of the plans examined
// without a budget, and takes less than a tenth of a second.
inline constexpr BestWork kBriefWork = {800'000, 0, 6, 15'000, kQuickCurve, 2};
inline constexpr BestWork kQuickWork = {4'000'000, 0, 12, 60'000, kQuickCurve, 4};
inline constexpr BestWork kNormalWork = {28'000'000, 12'000'000, 40, 1'000'000, kNormalCurve, 32};
inline constexpr BestWork kThoroughWork = {100'000'000,    40'000'000, 100, 10'000'000,
                                           kThoroughCurve, 32,         500};

// Above this many operations, the program over moments can't find a better plan within its work.
inline constexpr int32_t kMaxProgramOps = 2'000;
// Up to this many operations, whole searches beside the curve take no longer than the curve itself.
inline constexpr int32_t kFewProgramOps = 600;

struct BestOutcome;

struct BestOptions {
  int64_t budget = 0;  // On the peak, in bytes.
  BestWork work = kNormalWork;
  bool is_order_free = true;  // First runs may leave the graph's own order.
  // If set, the search ends with the first plan with at most this overhead, or once it proves that
  // none exists.
  std::optional<int64_t> enough = std::nullopt;
  std::vector<Runs> starts;  // Known plans, such as those of other algorithms.
  // The outcome of a search with less work for the same graph and the same options above. Its plan
  // is a start, and its proofs hold, so more work never gives a worse result.
  const BestOutcome* before = nullptr;
};

struct BestOutcome {
  std::optional<Runs> runs;  // Empty if no plan was found that fits the budget.
  int64_t overhead = 0;      // The overhead of `runs` over running everything once.
  int64_t lower_bound = 0;   // A lower bound on the overhead.
  OverheadProof proof = OverheadProof::kRunOnce;
  BoundScope scope = BoundScope::kAnyOrder;  // The scope of `lower_bound`.
  int64_t any_order_bound = 0;               // A lower bound on the overhead in any order.
  OverheadProof any_order_proof = OverheadProof::kRunOnce;
  bool is_optimal = false;     // Proven within the scope.
  PeakBound least_peak;        // Above the budget if `is_infeasible`.
  bool is_infeasible = false;  // Proven: no plan within the scope of `least_peak` fits.
  // The plan is so near to the bound that the other parts were skipped; see CurveWork.
  bool is_settled = false;
  int64_t program_work = 0;  // This search's work in programs (MipLimits::work).
  // A later search for a bound in any order starts from these: the moments of the plan, and those
  // that proved the bound.
  std::vector<OpId> moments;
  std::vector<OpId> proof_moments;
};

// After a stop (lib/base/stop.h), returns the best outcome so far, if any. Results about the graph
// stay in `problem` for searches with other budgets.
Result<BestOutcome> SolveBest(BestProblem* problem, const BestOptions& options);
// For a single search.
Result<BestOutcome> SolveBest(const JointGraph& graph, const BestOptions& options);

}  // namespace ckplan
