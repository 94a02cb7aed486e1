// Greedy plans: walk an order of operations, evict values when memory is short, and run operations
// again when an evicted value is read.
//
//   Kirisame et al. "Dynamic Tensor Rematerialization", ICLR 2021: evict values that are large,
//   stale and cheap to recompute, and recompute them on demand.
//
// Differs    from the paper, which plans while the program runs: here the order is known, so a
//            value's distance is the distance to its next use, not from its last one. The exponents
//            of size, distance and cost come from a table of variants, all of which are tried.
// Guarantee  none, except that a returned plan has a peak within the budget.
// Cost       O(r log r) for r runs in practice. A plan takes milliseconds for hundreds of
//            operations, and about a second for 100,000.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/problem/runs/run_problem.h"

namespace ckplan {

// Evicts first the value in memory with the largest
//
//   bytes^a · distance^b / cost^c
//
// where a = size_halves / 2 and so on. Half powers are square roots, which are the same on every
// machine; other powers need not be.
struct EvictionRule {
  int size_halves = 2;
  int distance_halves = 2;
  int cost_halves = 2;
  // The cost includes the operations that must run again before the value's producer because their
  // results are evicted as well.
  bool counts_ancestors = true;
  // A value is not evicted if, for it, more operations than this would have to run again. Fewer
  // plans fit then, but they take less time, and are found in less.
  size_t most_ancestors = 512;
};

// 36 variants, in a fixed order.
std::span<const EvictionRule> EvictionRules();

// kFree: a first run may be dropped in favour of a later run.
enum class FirstRuns : uint8_t { kKeepOrder, kFree };

// `order` has the operations whose first runs are walked, each once and after the producers of its
// reads; it must include all needed operations. `kept` flags values that are evicted only as a last
// resort; it may be empty. Returns nothing if the walk reaches a run that cannot fit the budget, or
// recomputes far too much.
std::optional<Runs> Evict(const RunProblem& problem, std::span<const OpId> order, int64_t budget,
                          const EvictionRule& rule, const std::vector<bool>& kept = {});

// Returns the cheapest plan over all the rules, trimmed; nothing if none fits.
std::optional<Runs> BestEviction(const RunProblem& problem, std::span<const OpId> order,
                                 int64_t budget, FirstRuns first_runs = FirstRuns::kKeepOrder,
                                 std::span<const EvictionRule> rules = EvictionRules());

// Removes runs whose values are not read before they are made again.
Runs DropUnread(const RunProblem& problem, const Runs& runs, FirstRuns first_runs);

// Moves each run that is not its operation's first as late as its readers allow; the order of first
// runs stays.
Runs RerunLate(const RunProblem& problem, const Runs& runs);

}  // namespace ckplan
