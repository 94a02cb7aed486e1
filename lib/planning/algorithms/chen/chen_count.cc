#include "lib/planning/algorithms/chen/chen_count.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "lib/planning/algorithms/chen/segment_plan.h"
#include "lib/problem/graph/chain.h"

namespace ckplan {
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

}  // namespace ckplan
