// The search of `best` for plans that can offload values: a bound, starts from its choices and from
// plans without copies, and annealing from these.
//
// Guarantee  the plan is valid, fits both budgets, and is at least as fast as every start that fits
//            and as an earlier search's plan. In the graph's own order, no plan adds less than
//            `lower_bound`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/base/result.h"
#include "lib/planning/algorithms/best/offload_annealing.h"
#include "lib/planning/algorithms/best/offload_network.h"
#include "lib/planning/algorithms/best/offload_search.h"
#include "lib/planning/plan/certificate.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/runs/run_problem.h"
#include "lib/problem/runs/runs_and_loads.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// Proves a lower bound for plans with copies to the host. First uses cuts (offload_cut.h) and then,
// with a MIP solver and work for it, the program over one moment (moment_program.h), which is
// tighter by about 0.1 % of a step. The program begins with the windows of copies that the cuts
// found, and is solved again with those that its solution exceeds.
//
// Guarantee  the bounds hold for all plans with this order of first runs. The same limits give the
//            same outcome.
// Cost       10 ms for the cuts of 800 operations, and 3 to 30 s for their programs, if `work`
//            allows it.
struct OffloadBoundLimits {
  int64_t cuts = 200;
  int64_t work = 0;  // For programs, as MipLimits counts it; 0: cuts only.
};

struct OffloadBound {
  bool is_infeasible = false;  // Proven: no plan fits; `least_peak` is above the budget.
  PeakBound least_peak;
  // A lower bound on what plans add to running the operations of the order once each.
  int64_t lower_bound = 0;
  OverheadProof proof = OverheadProof::kRunOnce;
  // Choices for the moment, best first: those of programs, then those of cuts.
  std::vector<OffloadChoice> choices;
  int64_t work = 0;  // Work done in programs.
};

// `order` and `moment` are as in CutWithOffload. A good moment is where the order itself needs the
// most memory. kUnsupported: too large for the MIP solver.
Result<OffloadBound> ProveOffloadBound(const RunProblem& problem, const CopyTimes& times,
                                       std::span<const OpId> order, size_t moment, int64_t budget,
                                       const OffloadBoundLimits& limits);

// What a search does on top of those with less effort.
struct OffloadEffort {
  OffloadWork search = kNormalOffload;
  int64_t cuts = 200;    // Per bound by cuts.
  int64_t programs = 0;  // Work of programs for the bound (MipLimits::work).
  int rooms = 5;         // Budgets, up to this one, to make choices for.
  // If set, the search ends with the first plan that adds at most this.
  std::optional<int64_t> enough = std::nullopt;
};

// For each of the plans examined without a budget.
inline constexpr OffloadEffort kBriefOffloadEffort = {kBriefOffload, 50, 0, 2};

inline constexpr OffloadEffort kQuickOffloadEffort = {kQuickOffload, 100, 0, 2};
inline constexpr OffloadEffort kNormalOffloadEffort = {kNormalOffload, 200, 12'000'000, 5};
inline constexpr OffloadEffort kThoroughOffloadEffort = {kThoroughOffload, 400, 60'000'000, 5};

struct OffloadOutcome {
  std::optional<OffloadPlan> best;
  std::optional<OffloadPlan> nearest;  // If unset: the lowest peak found.
  int64_t lower_bound = 0;             // On the overhead.
  OverheadProof proof = OverheadProof::kRunOnce;
  BoundScope scope = BoundScope::kOwnOrder;  // Where `lower_bound` holds.
  bool is_optimal = false;                   // In that scope.
  PeakBound least_peak;
  bool is_infeasible = false;  // Proven: no plan within the scope of `least_peak` fits.
};

// Returns the most memory that any operation needs by itself, with or without copies.
int64_t LargestNeed(const JointGraph& graph);

// `starts` are plans that obey the rules, with at most one copy back of each value. `before` is the
// outcome of a search with less effort for the same graph and limits, if any: its plan is a start,
// and its proofs hold, so more effort never gives a worse result.
Result<OffloadOutcome> SolveWithOffload(const JointGraph& graph, const OffloadLimits& limits,
                                        const OffloadEffort& effort,
                                        const std::vector<Schedule>& starts,
                                        const OffloadOutcome* before = nullptr);

}  // namespace ckplan
