#include "lib/planning/algorithms/chen/chen_sqrt.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "lib/problem/graph/vertex_graph.h"

namespace ckplan {

namespace {

class ChenSqrt : public PreparedSolver {
 public:
  explicit ChenSqrt(const Problem& problem)
      : problem_(problem),
        chain_(FindChain(problem.graph, problem.vertices)),
        block_memory_(static_cast<size_t>(chain_.block_count)) {
    for (const NodeId v : problem.vertices.ids()) {
      block_memory_[static_cast<size_t>(chain_.block_of[v])] += problem.vertices.memory(v);
    }
  }

  Knob knob() const override {
    const auto candidates = static_cast<int64_t>(chain_.splitting.size());
    const auto root = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(candidates))));
    return {Knob::Kind::kSegmentCount, 1, std::max<int64_t>(1, candidates),
            std::max<int64_t>(1, root)};
  }

  Result<SolveOutcome> Solve(int64_t segment_count, const SolveLimits&) override {
    return PlanOfSegments(problem_, chain_, CutBlocks(segment_count));
  }

 private:
  // Ends a segment at the first block that reaches the next multiple of total / k.
  std::vector<int32_t> CutBlocks(int64_t segment_count) const {
    const int64_t total = problem_.vertices.total_memory().count();
    std::vector<int32_t> segment_of_block;
    int32_t segment = 0;
    int64_t multiple = 1;
    Bytes passed;
    for (size_t block = 0; block < block_memory_.size(); ++block) {
      segment_of_block.push_back(segment);
      passed += block_memory_[block];
      const auto is_due = [&] {
        return passed.count() >= MultipleOf(total, multiple, segment_count);
      };
      const bool is_last = block + 1 == block_memory_.size();
      if (is_last || multiple >= segment_count || !is_due()) continue;
      ++segment;
      while (multiple < segment_count && is_due()) ++multiple;
    }
    return segment_of_block;
  }

  // Returns total * multiple / parts without overflow.
  static int64_t MultipleOf(int64_t total, int64_t multiple, int64_t parts) {
    return total / parts * multiple + total % parts * multiple / parts;
  }

  const Problem& problem_;
  const Chain chain_;
  std::vector<Bytes> block_memory_;
};

}  // namespace

Result<std::unique_ptr<PreparedSolver>> PrepareChenSqrt(const Problem& problem,
                                                        const SolveLimits&) {
  return std::unique_ptr<PreparedSolver>(new ChenSqrt(problem));
}

namespace {

int64_t DividedRoundingUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Returns ceil(sqrt(n)).
int64_t RootRoundedUp(int64_t n) {
  auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
  while (root * root < n) ++root;
  return root;
}

class ChenCount : public PreparedSolver {
 public:
  explicit ChenCount(const Problem& problem)
      : problem_(problem), chain_(FindChain(problem.graph, problem.vertices)) {}

  Knob knob() const override {
    const auto candidates = static_cast<int64_t>(chain_.splitting.size());
    const int64_t layers = std::max(1, chain_.block_count);
    return {Knob::Kind::kSegmentCount, 1, std::max<int64_t>(1, candidates),
            DividedRoundingUp(layers, RootRoundedUp(layers))};
  }

  Result<SolveOutcome> Solve(int64_t segment_count, const SolveLimits&) override {
    return PlanOfSegments(problem_, chain_, CutBlocks(segment_count));
  }

 private:
  std::vector<int32_t> CutBlocks(int64_t segment_count) const {
    const int64_t layers = chain_.block_count;
    const int64_t length = DividedRoundingUp(layers, segment_count);
    std::vector<int32_t> segment_of_block;
    for (int64_t segment = 0; segment < segment_count; ++segment) {
      const int64_t left = layers - static_cast<int64_t>(segment_of_block.size());
      const int64_t segments_behind = segment_count - segment - 1;
      const int64_t taken = std::min(length, left - segments_behind);
      segment_of_block.insert(segment_of_block.end(), static_cast<size_t>(taken),
                              static_cast<int32_t>(segment));
    }
    return segment_of_block;
  }

  const Problem& problem_;
  const Chain chain_;
};

}  // namespace

Result<std::unique_ptr<PreparedSolver>> PrepareChenCount(const Problem& problem,
                                                         const SolveLimits&) {
  return std::unique_ptr<PreparedSolver>(new ChenCount(problem));
}

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
