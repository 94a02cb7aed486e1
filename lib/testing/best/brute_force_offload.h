// The best plan with copies to the host and back, by a search of all states, for tests of the
// bounds in lib/planning/algorithms/best.
//
// A state is what is in memory, on the host and on its way, with the times at which copies end,
// counted from the end of the last run. Each step of a plan is a move: a run, or the out, drop or
// in of a value. The search is Dijkstra's, by the time that is added to running everything once.
// Values leave memory where a run or an `in` needs room, in every way that makes just
// enough of it: leaving earlier gains nothing.
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

// A random training step with a budget and a link to the host, for tests of
// lib/planning/algorithms/best.

// Its search has fewer states, or is given up: one instance in fifty.
inline constexpr size_t kMaxOffloadStates = 50'000;

// Each operation has the memory that it needs by itself, but the own order as it is has not enough.
struct OffloadInstance {
  OffloadInstance(uint64_t seed, int most_ops)
      : rng(seed), graph(Draw(&rng, most_ops)), problem(graph) {
    while (LargestSet() >= Peak() || problem.value_count > 12) {
      graph = Draw(&rng, most_ops);
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

  static JointGraph Draw(Rng* rng, int most_ops) {
    const bool is_chain = rng->Chance(60);
    // With fewer layers nothing runs between the step that needs most memory and a copy's reader.
    return is_chain ? ChainJointGraph(*rng, static_cast<int>(rng->Between(3, 4)))
                    : RandomSmallGraph(*rng, static_cast<int>(rng->Between(3, most_ops)));
  }

  OffloadOptimum Optimum() const {
    return ExhaustiveOffload(problem, times, order, budget, kMaxOffloadStates);
  }

  int64_t Peak() const { return PeakOf(problem, RequiredOwnOrder(problem)); }

  // The bytes that some required operation needs by itself.
  int64_t LargestSet() const {
    int64_t most = 0;
    for (const OpId op : RequiredOwnOrder(problem)) {
      const auto at = At(op.index());
      int64_t bytes =
          problem.written_bytes[at] + problem.workspace[at] - problem.in_place_bytes[at];
      for (const int32_t read : problem.reads[op.index()]) bytes += problem.bytes[At(read)];
      most = std::max(most, bytes);
    }
    return most;
  }

  Rng rng;
  JointGraph graph;
  RunProblem problem;
  Runs order;
  int64_t budget = 0;
  CopyTimes times;
};

}  // namespace ckplan
