#include "lib/planning/algorithms/chen/chen_sqrt.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "lib/planning/algorithms/chen/segment_plan.h"
#include "lib/problem/graph/chain.h"

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
  // Ends a segment at the first block whose end is at or past the next multiple of total / k.
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

}  // namespace ckplan
