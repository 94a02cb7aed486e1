// Turns the choices of a cut into plans that fit a budget.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/planning/algorithms/best/curve/nested_network.h"
#include "lib/planning/algorithms/best/eviction.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {

// Returns the order with reruns that leave across each moment what the network's last cut keeps.
// Its peak at the moments is what the cut says; between them, nothing limits it.
Runs RunsOfCut(const RunProblem& problem, std::span<const OpId> order,
               const NestedNetwork& network);

// Returns a plan within the budget by evicting values, those that a cut keeps (`kept`, by value)
// only as a last resort; nothing if the rule finds none. Reruns come as late as they can.
std::optional<Runs> EvictedAround(const RunProblem& problem, std::span<const OpId> order,
                                  int64_t budget, const EvictionRule& rule,
                                  const std::vector<bool>& kept);

// Leaves out reruns, the dearest for their bytes first, as long as the peak stays within the
// budget; with each goes what only it reads. `runs` must be a plan. Returns it unchanged if it
// exceeds the budget.
Runs WithoutSpareReruns(const RunProblem& problem, const Runs& runs, int64_t budget);

}  // namespace ckplan
