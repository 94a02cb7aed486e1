// The search of `best` for plans that may copy values to the host and back: a bound, starts from
// its choices and from plans without copies, and annealing from these.
//
// Guarantee  the plan is valid, within both budgets and no slower than any of the starts that are
//            within them, or than that of an earlier search. In the graph's own order, no plan adds
//            less than `lower_bound`.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/base/result.h"
#include "lib/planning/algorithms/best/offload_annealing.h"
#include "lib/planning/algorithms/best/offload_search.h"
#include "lib/planning/plan/certificate.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// What a search does in addition to those with less effort.
struct OffloadEffort {
  OffloadWork search = kNormalOffload;
  int64_t cuts = 200;    // For each bound by cuts.
  int64_t programs = 0;  // The work of programs for the bound (MipLimits::work).
  int rooms = 5;         // Budgets, this one and lower ones, for which choices are made.
  // If set, the search ends with the first plan that adds no more.
  std::optional<int64_t> enough = std::nullopt;
};

// For each of the plans that are examined if no budget is given.
inline constexpr OffloadEffort kGlanceOffloadEffort = {kGlanceOffload, 50, 0, 2};

inline constexpr OffloadEffort kQuickOffloadEffort = {kQuickOffload, 100, 0, 2};
inline constexpr OffloadEffort kNormalOffloadEffort = {kNormalOffload, 200, 12'000'000, 5};
inline constexpr OffloadEffort kThoroughOffloadEffort = {kThoroughOffload, 400, 60'000'000, 5};

struct OffloadOutcome {
  std::optional<OffloadPlan> best;
  std::optional<OffloadPlan> nearest;  // If there is none: the plan of least peak found.
  int64_t lower_bound = 0;             // On the overhead.
  OverheadProof proof = OverheadProof::kRunOnce;
  BoundScope scope = BoundScope::kOwnOrder;  // Where `lower_bound` holds.
  bool is_optimal = false;                   // Within that scope.
  PeakBound least_peak;
  bool is_infeasible = false;  // Proven: no plan within the scope of `least_peak` fits.
};

// Returns the memory that some operation needs by itself, wherever it runs, with copies or without.
int64_t LargestNeed(const JointGraph& graph);

// `starts` are plans that obey the rules, with at most one copy back of each value. `before` is the
// outcome of a search with less effort for the same graph and limits, if there was one: its plan is
// a start, and its proofs hold, so more effort never gives less.
Result<OffloadOutcome> SolveWithOffload(const JointGraph& graph, const OffloadLimits& limits,
                                        const OffloadEffort& effort,
                                        const std::vector<Schedule>& starts,
                                        const OffloadOutcome* before = nullptr);

}  // namespace ckplan
