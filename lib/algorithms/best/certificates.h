// What no plan can get below, proven before any search. docs/bounds.md has the theorems and proofs.
//
//   least_peak_any_plan        A working set: while an operation runs, memory holds what it reads
//   and
//                              writes, its workspace, and what must live beyond it since its maker
//                              must not run again. The largest of them over the operations that
//                              every plan must run; or what the last run of a result's maker needs
//                              beside all results.
//   least_peak_once_any_order  A cut: when v runs and nothing runs twice, a downset of operations
//   has
//                              run that holds v's ancestors and neither v nor its descendants, and
//                              memory holds every value that crosses its boundary. The least
//                              boundary of all such downsets is a least cut; the largest of them
//                              over v, with what v itself needs, holds for every order.
//
// Only downsets that may raise the bound are cut for. On large graphs that ends after a set amount
// of work, with the bound that is proven by then; the same on every machine.
#pragma once

#include <cstdint>

#include "lib/joint/run_problem.h"

namespace ckplan {

struct Certificates {
  int64_t least_peak_any_plan = 0;        // Bytes. Below it, no plan at all.
  OpId at;                                // An operation that needs them.
  int64_t least_peak_once_any_order = 0;  // Bytes. Below it, none without recomputation.
  OpId once_at;
};

// `max_work` is counted in arcs of the graph looked at: 10^8 take about half a second.
Certificates FindCertificates(const RunProblem& problem, int64_t max_work = 100'000'000);

}  // namespace ckplan
