// Greedy plans: walk an order of operations, evict values when memory is short, run operations
// again when something that is read is gone.
//
//   Kirisame et al. "Dynamic Tensor Rematerialization", ICLR 2021: evict what is large, stale and
//   cheap to run again, and run it again when it is asked for.
//
// Differs    from the paper, which plans while the program runs: here the order is known, so a
//            value's distance is that to its next use, not from its last one; and the exponents of
//            size, distance and cost are a table of variants, all of which are tried.
// Guarantee  none, but for what is returned: a plan whose peak is within the budget.
// Cost       O(r log r) for r runs in practice. A plan takes milliseconds for hundreds of
//            operations, and about a second for 100,000.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/joint/run_problem.h"

namespace ckplan {

// The first to be evicted is the value in memory with the largest
// bytes^a · distance^b / cost^c, with a = size_halves / 2 and so on. Half powers are square roots,
// which are the same on every machine; other powers need not be.
struct EvictionRule {
  int size_halves = 2;
  int distance_halves = 2;
  int cost_halves = 2;
  // Whether the cost counts what must run again before the value's maker can, since it is gone too.
  bool counts_ancestors = true;
};

// 36 variants, in a fixed order.
std::span<const EvictionRule> EvictionRules();

// Whether first runs must keep the order that is given, or may be dropped in favour of a later run.
enum class FirstRuns : uint8_t { kKeepOrder, kFree };

// `order`: operations whose first runs are walked, each once and behind what makes its reads; it
// holds all that are needed. `kept`: values that are evicted only when nothing else is left, one
// flag for each value; none if empty. Nothing if the walk comes to a run that cannot fit the
// budget, or runs far too much again.
std::optional<Runs> Evict(const RunProblem& problem, std::span<const OpId> order, int64_t budget,
                          const EvictionRule& rule, const std::vector<bool>& kept = {});

// The cheapest plan of all the rules, trimmed; nothing if none fits.
std::optional<Runs> BestEviction(const RunProblem& problem, std::span<const OpId> order,
                                 int64_t budget, FirstRuns first_runs = FirstRuns::kKeepOrder,
                                 std::span<const EvictionRule> rules = EvictionRules());

// Without the runs whose values nobody reads before they are made again.
Runs DropUnread(const RunProblem& problem, const Runs& runs, FirstRuns first_runs);

// Each run but an operation's first as late as its readers allow; the first runs stay in order.
Runs RerunLate(const RunProblem& problem, const Runs& runs);

}  // namespace ckplan
