// A random training step with a budget, for tests of lib/planning/algorithms/best.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/rng.h"
#include "lib/planning/algorithms/best/certificates.h"
#include "lib/planning/algorithms/best/flat_simulation.h"
#include "lib/planning/algorithms/best/moment_loop.h"
#include "lib/problem/runs/run_problem.h"
#include "lib/testing/best/brute_force.h"

namespace ckplan {

// More than the search of any instance needs.
inline constexpr LoopLimits kAmple = {1'000'000'000, 30};

// Whether other micro-batches are in flight.
enum class InFlight : uint8_t { kOne, kSeveral };

// The budget is between half of the peak of the graph's own order and that peak. Often no plan fits
// in the lower half.
struct RandomInstance {
  RandomInstance(uint64_t seed, int percent_chains, InFlight in_flight = InFlight::kOne)
      : rng(seed), graph(Draw(&rng, percent_chains)), problem(graph) {
    order = RequiredOwnOrder(problem);
    if (in_flight == InFlight::kSeveral) {
      const OpId loss =
          order[static_cast<size_t>(rng.Between(0, static_cast<int64_t>(order.size()) - 1))];
      graph = WithLoss(graph, loss);
      problem = RunProblem(graph, {rng.Between(1, 3), loss.index()});
    }
    const int64_t peak = PeakOf(problem, order);
    budget = rng.Between(peak / 2, peak);
  }

  static JointGraph Draw(Rng* rng, int percent_chains) {
    const bool is_chain = rng->Chance(percent_chains);
    return is_chain ? ChainJointGraph(*rng, static_cast<int>(rng->Between(2, 4)))
                    : RandomSmallGraph(*rng, static_cast<int>(rng->Between(3, 8)));
  }

  // Draws each operation with this probability. Keeps the graph's own order.
  std::vector<OpId> DrawOps(int percent) {
    std::vector<OpId> ops;
    for (const OpId op : order) {
      if (rng.Chance(percent)) ops.push_back(op);
    }
    return ops;
  }

  int64_t OnceCost() const { return CostOf(problem, order); }

  Rng rng;
  JointGraph graph;
  RunProblem problem;
  Runs order;
  int64_t budget = 0;
};

}  // namespace ckplan
