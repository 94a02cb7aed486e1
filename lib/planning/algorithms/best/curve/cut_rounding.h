// Turns the choices of a cut into plans that fit a budget.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/planning/algorithms/best/curve/nested_network.h"
#include "lib/planning/algorithms/best/eviction.h"
#include "lib/planning/algorithms/best/flat_simulation.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {

// Returns the order with reruns such that each moment keeps what the network's last cut keeps. Its
// peak at the moments is that of the cut; between them, nothing limits it.
Runs RunsOfCut(const RunProblem& problem, std::span<const OpId> order,
               const NestedNetwork& network);

// Returns a plan by evicting values; those that a cut keeps (`kept`, by value) only as a last
// resort. The budget limits the peak of one micro-batch. Returns nothing if the rule finds no plan.
// Reruns come as late as possible. The simulator is the problem's.
std::optional<Runs> EvictedAround(const RunProblem& problem, std::span<const OpId> order,
                                  int64_t budget, const EvictionRule& rule,
                                  const std::vector<bool>& kept, FlatSimulator* simulator);

// Removes reruns, the most costly per byte first, as long as the peak fits the budget, together
// with runs that only they read. `runs` must be a plan. Returns it unchanged if it exceeds the
// budget.
Runs WithoutSpareReruns(const RunProblem& problem, const Runs& runs, int64_t budget);

}  // namespace ckplan
