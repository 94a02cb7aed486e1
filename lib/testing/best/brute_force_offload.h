// Finds the best plan with offloading by exhaustive search, for tests of the bounds in
// lib/planning/algorithms/best.
//
// A state records which values are in memory, on the host or being copied, and when each copy ends,
// relative to the end of the last run. Each step of a plan is a move: a run, or the out, drop or in
// of a value. The search is Dijkstra's algorithm; a path's length is the time beyond running
// everything once. Values are dropped only when a run or an `in` needs their memory, because
// dropping them earlier gains nothing. The search tries every minimal set of values to drop.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/planning/algorithms/best/certificates.h"
#include "lib/planning/algorithms/best/flat_simulation.h"
#include "lib/planning/algorithms/best/offload_network.h"
#include "lib/problem/runs/run_problem.h"
#include "lib/testing/best/brute_force.h"

namespace ckplan {

struct OffloadStep {
  enum class Kind : uint8_t { kRun, kOut, kDrop, kIn };
  Kind kind = Kind::kRun;
  int32_t number = 0;  // The index of the operation or the value.

  bool operator==(const OffloadStep&) const = default;
};

struct OffloadOptimum {
  bool is_known = false;     // False if the search was abandoned.
  bool is_feasible = false;  // Whether any plan fits.
  // The plan's running time minus the time to run `order` once.
  int64_t added = 0;
  std::vector<OffloadStep> steps;
};

// Returns the fastest plan within the budget whose first runs follow `order`. Works for at most 12
// values whose copies take at most 30,000 ns in total. Gives up after `max_states` states.
OffloadOptimum ExhaustiveOffload(const RunProblem& problem, const CopyTimes& times,
                                 std::span<const OpId> order, int64_t budget, size_t max_states);

// A random training step with a budget and a link to the host, for tests of
// lib/planning/algorithms/best.

// The search of about one instance in fifty exceeds this limit and is abandoned.
inline constexpr size_t kMaxOffloadStates = 50'000;

// The budget suffices for each operation alone, but not for running the graph's order once.
struct OffloadInstance {
  OffloadInstance(uint64_t seed, int max_ops)
      : rng(seed), graph(Draw(&rng, max_ops)), problem(graph) {
    while (LargestSet() >= Peak() || problem.value_count > 12) {
      graph = Draw(&rng, max_ops);
      problem = RunProblem(graph);
    }
    order = RequiredOwnOrder(problem);
    budget = rng.Between(LargestSet(), Peak() - 1);
    std::vector<bool> may_move;
    for (size_t value = 0; value < problem.bytes.size(); ++value) {
      may_move.push_back(problem.bytes[value] > 0 && !problem.is_result[value] && !rng.Chance(10));
    }
    Link link;
    link.out_bytes_per_second = int64_t{250'000'000} << rng.Between(0, 5);
    link.in_bytes_per_second = int64_t{250'000'000} << rng.Between(0, 5);
    link.latency_ns = rng.Between(0, 2);
    link.duplex = rng.Chance(30) ? Duplex::kHalf : Duplex::kFull;
    times = CopyTimesOf(problem, link, std::move(may_move));
  }

  static JointGraph Draw(Rng* rng, int max_ops) {
    const bool is_chain = rng->Chance(60);
    // With fewer layers nothing runs between the step with the peak and the reader of a copy.
    return is_chain ? ChainJointGraph(*rng, static_cast<int>(rng->Between(3, 4)))
                    : RandomSmallGraph(*rng, static_cast<int>(rng->Between(3, max_ops)));
  }

  OffloadOptimum Optimum() const {
    return ExhaustiveOffload(problem, times, order, budget, kMaxOffloadStates);
  }

  int64_t Peak() const { return PeakOf(problem, RequiredOwnOrder(problem)); }

  // Returns the maximum of the bytes that a required operation needs by itself.
  int64_t LargestSet() const {
    int64_t largest = 0;
    for (const OpId op : RequiredOwnOrder(problem)) {
      const auto at = At(op.index());
      int64_t bytes =
          problem.written_bytes[at] + problem.workspace[at] - problem.in_place_bytes[at];
      for (const int32_t read : problem.reads[op.index()]) bytes += problem.bytes[At(read)];
      largest = std::max(largest, bytes);
    }
    return largest;
  }

  Rng rng;
  JointGraph graph;
  RunProblem problem;
  Runs order;
  int64_t budget = 0;
  CopyTimes times;
};

}  // namespace ckplan
