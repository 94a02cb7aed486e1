// The best plan with copies to the host and back, by a search of all states, for tests of the
// bounds in lib/planning/algorithms/best.
//
// A state is what is in memory, on the host and on its way, with the times at which copies end,
// counted from the end of the last run. Each step of a plan is a move: a run, or the out, drop or
// in of a value. The search is Dijkstra's, by the time that is added to running everything once.
// Values leave memory where a run or an `in` needs room, in every way that makes just
// enough of it: leaving earlier gains nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/planning/algorithms/best/offload_network.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {

struct OffloadStep {
  enum class Kind : uint8_t { kRun, kOut, kDrop, kIn };
  Kind kind = Kind::kRun;
  int32_t number = 0;  // The index of the operation or the value.

  bool operator==(const OffloadStep&) const = default;
};

struct OffloadOptimum {
  bool is_known = false;     // False: the search was given up.
  bool is_feasible = false;  // Whether any plan fits.
  // The time at which the last run ends, beyond that of running `order` once.
  int64_t added = 0;
  std::vector<OffloadStep> steps;
};

// Returns a plan of least time among all within the budget in which the first runs of `order`'s
// operations come in this order. For at most 12 values whose copies take at most 30,000 ns
// together. Gives up after `max_states` states.
OffloadOptimum ExhaustiveOffload(const RunProblem& problem, const CopyTimes& times,
                                 std::span<const OpId> order, int64_t budget, size_t max_states);

}  // namespace ckplan
