// Lower bounds for every plan, proven before any search. docs/bounds.md has the theorems and
// proofs.
//
//   least_peak_any_plan        A working set: while an operation runs, memory holds its reads and
//                              writes, its workspace, and values that must stay because their
//                              producer must not run again. The bound is the largest working set
//                              over the operations that every plan must run, or the memory that the
//                              last run of a result's producer needs on top of all results.
//   least_peak_once_any_order  A cut: when v runs and nothing runs twice, the operations that have
//                              run are a downset that holds v's ancestors and neither v nor its
//                              descendants, and memory holds every value that crosses its boundary.
//                              The least boundary of all such downsets is a minimum cut. The
//                              largest of these over v, with v's own needs, holds for every order.
//
// Cuts are computed only for operations that may raise the bound. On large graphs, this ends after
// a fixed amount of work with the bound proven so far, the same on every machine.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lib/problem/runs/run_problem.h"

namespace ckplan {

// Returns the operations that every plan must run: those that produce a result or a parameter
// gradient, and their ancestors. Omitting the others never raises a plan's peak or cost.
std::vector<bool> RequiredOps(const RunProblem& problem);

// Returns the required operations in the graph's own order.
Runs RequiredOwnOrder(const RunProblem& problem);

struct Certificates {
  int64_t least_peak_any_plan = 0;        // In bytes: a lower bound for every plan.
  OpId at;                                // An operation that needs this much.
  int64_t least_peak_once_any_order = 0;  // In bytes. No plan without recomputation has a lower
                                          // peak.
  OpId once_at;
};

// `max_work` counts visited arcs of the graph: 10^8 take about half a second.
Certificates FindCertificates(const RunProblem& problem, int64_t max_work = 100'000'000);

// Returns `least_peak_any_plan` and `at` for plans that can offload some values: only values that
// can be neither offloaded nor recomputed must stay. Cuts prove nothing about such plans.
std::pair<int64_t, OpId> MinPeakWithCopies(const RunProblem& problem,
                                           const std::vector<bool>& may_move,
                                           int64_t max_work = 100'000'000);

}  // namespace ckplan
