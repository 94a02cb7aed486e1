#include "lib/planning/algorithms/chen/segment_plan.h"

#include <algorithm>
#include <utility>

namespace ckplan {
namespace {

PaperFigures PaperFiguresOf(const Problem& problem, const Chain& chain,
                            const std::vector<int32_t>& segment_of_block) {
  std::vector<Bytes> segment_memory(segment_of_block.empty() ? 1 : segment_of_block.size());
  for (const NodeId v : problem.vertices.ids()) {
    const auto block = static_cast<size_t>(chain.block_of[v]);
    segment_memory[static_cast<size_t>(segment_of_block[block])] += problem.vertices.memory(v);
  }
  PaperFigures paper;
  paper.overhead = problem.vertices.total_time();
  Bytes kept;
  for (size_t block = 0; block + 1 < segment_of_block.size(); ++block) {
    if (segment_of_block[block + 1] == segment_of_block[block]) continue;
    kept += problem.vertices.memory(chain.splitting[block]);
    paper.overhead -= problem.vertices.time(chain.splitting[block]);
  }
  paper.peak = kept + *std::max_element(segment_memory.begin(), segment_memory.end());
  return paper;
}

}  // namespace

SolveOutcome PlanOfSegments(const Problem& problem, const Chain& chain,
                            const std::vector<int32_t>& segment_of_block) {
  LowerSetSequence sequence;
  sequence.segment_of.resize(problem.vertices.size());
  for (const NodeId v : problem.vertices.ids()) {
    sequence.segment_of[v] = segment_of_block[static_cast<size_t>(chain.block_of[v])];
  }
  sequence.segment_count = segment_of_block.empty() ? 1 : segment_of_block.back() + 1;
  SolveOutcome outcome;
  outcome.paper = PaperFiguresOf(problem, chain, segment_of_block);
  outcome.strategy = std::move(sequence);
  outcome.guarantee = "heuristic: O(sqrt n) memory for a chain of n equal layers";
  return outcome;
}

}  // namespace ckplan
