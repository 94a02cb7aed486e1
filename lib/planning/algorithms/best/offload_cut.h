// One order, one moment, and a link to the host: minimum cuts decide which values to keep in memory
// across the moment, which to copy to the host before it and back after it, and which operations to
// rerun. docs/bounds.md states the program, and why its Lagrangian bounds every plan of the order
// (Theorem 10).
//
// The network is that of one moment in nested_network.h with other capacities. Copies out share the
// time between the runs that produce the values and the moment; copies back share that between the
// moment and the runs that read them. Such a window of time has a price, like memory.
//
//   source ──▶ N_u ── min(λ·bytes, price of the copies' windows) ──▶ R_m ── (1 - Σμ)·cost ──▶ sink
//
// Column generation finds the prices: each cut adds a choice, and a small linear program over the
// choices so far (offload_cut.cc) says which prices to try next, and which windows are too short
// for its copies. Any prices prove a bound, so rounding doesn't matter.
//
// Cost  one minimum cut per trial of prices, mostly 20 to 200 of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/planning/algorithms/best/offload_network.h"
#include "lib/problem/runs/run_problem.h"
#include "lib/problem/runs/runs_and_loads.h"

namespace ckplan {

struct OffloadCut {
  // False: no plan with this order of first runs fits the budget. Every plan exceeds it by at least
  // `missing_bytes`, and the other members are empty.
  bool is_feasible = true;
  int64_t missing_bytes = 0;
  // A lower bound on what such plans add to running the operations of the order once each.
  int64_t added_cost = 0;
  // By roughly increasing time, those that leave room for the moment's operation first.
  std::vector<OffloadChoice> choices;
  std::vector<CopyWindow> windows;  // With a price; for the program over moments.
  int64_t cuts = 0;                 // Number of cuts.
};

// `order` has operations once each, after those they need; `moment` is a position in it. Makes at
// most `max_cuts` cuts.
OffloadCut CutWithOffload(const RunProblem& problem, const CopyTimes& times,
                          std::span<const OpId> order, size_t moment, int64_t budget,
                          int64_t max_cuts);

}  // namespace ckplan
