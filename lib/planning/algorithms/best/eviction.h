// Greedy plans: walk through an order of operations, evict values when memory is short, and
// recompute evicted values when they are read.
//
//   Kirisame et al. "Dynamic Tensor Rematerialization", ICLR 2021: evict values that are large,
//   stale and cheap to recompute, and recompute them on demand.
//
// Differs    from the paper, which plans while the program runs: here the order is known, so a
//            value's distance is that to its next use, not from its last one. The exponents of
//            size, distance and cost come from a table of variants, which are all tried.
// Guarantee  none, except that the peak of a returned plan fits the budget.
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

// Evicts the value in memory with the largest
//
//   bytes^a · distance^b / cost^c
//
// where a = size_halves / 2 and so on. Half powers are square roots, which are the same on every
// machine, unlike other powers.
struct EvictionRule {
  int size_halves = 2;
  int distance_halves = 2;
  int cost_halves = 2;
  // Whether the cost includes evicted ancestors that must be recomputed as well.
  bool counts_ancestors = true;
  // Values that take more operations than this to recompute are not evicted. Then fewer plans fit,
  // but they take less time, and are found faster.
  size_t max_ancestors = 512;
  // With other micro-batches, evicts all but `kept` after the loss.
  bool drops_at_loss = false;
};

// 36 variants, in a fixed order.
std::span<const EvictionRule> EvictionRules();

// kFree: a later run may replace a first run.
enum class FirstRuns : uint8_t { kKeepOrder, kFree };

// `order` has the operations to walk through, each once and after the producers of its reads; it
// must include all needed operations. `kept` flags values to evict only as a last resort; it may be
// empty. The budget is that of one micro-batch. Returns nothing if the walk reaches a run that
// cannot fit the budget, or recomputes far too much.
std::optional<Runs> Evict(const RunProblem& problem, std::span<const OpId> order, int64_t budget,
                          const EvictionRule& rule, const std::vector<bool>& kept = {});

// Returns the cheapest plan over all the rules, trimmed, or nothing if none fits.
std::optional<Runs> BestEviction(const RunProblem& problem, std::span<const OpId> order,
                                 int64_t budget, FirstRuns first_runs = FirstRuns::kKeepOrder,
                                 std::span<const EvictionRule> rules = EvictionRules());

// Removes runs whose values are recomputed before they are read.
Runs DropUnread(const RunProblem& problem, const Runs& runs, FirstRuns first_runs);

// Moves each rerun as late as its readers allow. First runs keep their order.
Runs DelayReruns(const RunProblem& problem, const Runs& runs);

}  // namespace ckplan
