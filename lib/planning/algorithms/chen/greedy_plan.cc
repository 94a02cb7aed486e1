#include "lib/planning/algorithms/chen/greedy_plan.h"

#include <utility>

#include "lib/planning/algorithms/chen/greedy_cut.h"

namespace ckplan {

SolveOutcome GreedyPlan(const Problem& problem, const Chain& chain, Bytes budget) {
  const GreedyCut cut = CutGreedily(chain, problem.vertices, budget);
  LowerSetSequence sequence;
  sequence.segment_count = cut.segment_count;
  sequence.segment_of.resize(problem.vertices.size());
  for (const NodeId v : problem.vertices.ids()) {
    sequence.segment_of[v] = cut.segment_of_block[static_cast<size_t>(chain.block_of[v])];
  }
  SolveOutcome outcome;
  outcome.strategy = std::move(sequence);
  outcome.paper = {budget, cut.kept + cut.largest_segment,
                   problem.vertices.total_time() - cut.kept_time};
  outcome.guarantee = "heuristic: segments are closed as soon as they pass B bytes";
  return outcome;
}

}  // namespace ckplan
