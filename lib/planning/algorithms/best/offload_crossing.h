// Combines choices: each value made before some position of the order is treated as one choice
// says, and each later one as another says.
//
// Least cuts find extremes. In a network of equal layers they treat all layers alike, so one choice
// takes too much memory and the next takes too much time; what fits best treats some layers in one
// way and the others in another way.
//
// Cost  counted in steps of the sequences that are tried.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/planning/algorithms/best/offload_annealing.h"
#include "lib/problem/runs/run_problem.h"
#include "lib/problem/runs/runs_and_loads.h"

namespace ckplan {

// What a sequence takes. Its score is its time, with a charge for what it takes above the budgets:
// one percent of a step for one percent of a budget.
struct OffloadMeasures {
  int64_t peak = 0;
  int64_t time = 0;
  bool fits = false;
  double score = 0;
};
OffloadMeasures MeasureOffload(const RunProblem& problem, const OffloadLimits& limits,
                               const RunsAndLoads& steps);

// Returns the sequences of the choices and of their best combinations. All choices must have the
// same order and moment. `work` limits the steps of all combinations that are tried.
std::vector<RunsAndLoads> CrossChoices(const RunProblem& problem, const OffloadLimits& limits,
                                       const std::vector<OffloadChoice>& choices, int64_t work);

}  // namespace ckplan
