#include "lib/planning/algorithms/chen/chen_recursive.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/base/stop.h"
#include "lib/problem/graph/vertex_graph.h"
#include "lib/problem/schedule/lower.h"

namespace ckplan {
namespace {

// Each crossing takes four bytes, and one visit per level of the recursion.
constexpr int64_t kMaxCrossings = 50'000'000;

class ChenRecursive : public PreparedSolver {
 public:
  explicit ChenRecursive(const Problem& problem)
      : chain_(FindChain(problem.graph, problem.vertices)),
        inner_memory_(static_cast<size_t>(chain_.block_count)),
        end_memory_(static_cast<size_t>(chain_.block_count)),
        time_before_(static_cast<size_t>(chain_.block_count) + 1) {
    for (const NodeId v : problem.vertices.ids()) {
      const auto block = static_cast<size_t>(chain_.block_of[v]);
      inner_memory_[block] += problem.vertices.memory(v);
      time_before_[block + 1] += problem.vertices.time(v);
    }
    for (size_t block = 0; block < inner_memory_.size(); ++block) {
      time_before_[block + 1] += time_before_[block];
      if (block >= chain_.splitting.size()) continue;
      end_memory_[block] = problem.vertices.memory(chain_.splitting[block]);
      inner_memory_[block] -= end_memory_[block];
    }
  }

  // Returns the number of results that cross a cut between two blocks, summed over all cuts.
  int64_t CountCrossings(const VertexGraph& vertices) const {
    int64_t crossings = 0;
    for (const NodeId v : vertices.ids()) {
      int32_t last_block = chain_.block_of[v];
      for (const NodeId reader : vertices.successors(v)) {
        last_block = std::max(last_block, chain_.block_of[reader]);
      }
      crossings += last_block - chain_.block_of[v];
    }
    return crossings;
  }

  Knob knob() const override {
    return {Knob::Kind::kResultsPerLevel, 1, std::max<int64_t>(1, chain_.block_count - 1), 1};
  }

  Result<SolveOutcome> Solve(int64_t kept_per_level, const SolveLimits&) override {
    RecursiveSplit split;
    split.block_of = chain_.block_of;
    split.block_count = chain_.block_count;
    split.kept_per_level = static_cast<int32_t>(kept_per_level);
    SolveOutcome outcome;
    outcome.paper = FiguresOf(0, split.block_count, split.kept_per_level);
    outcome.strategy = std::move(split);
    outcome.guarantee = "heuristic: k log_{k+1} n memory for a chain of n equal layers";
    return outcome;
  }

 private:
  // Returns g of Eq. 2 for the blocks [begin, end), and the forward cost of all reruns.
  PaperFigures FiguresOf(int32_t begin, int32_t end, int32_t kept_per_level) const {
    PollStop();
    PaperFigures figures;
    if (end - begin == 1) {
      figures.peak = inner_memory_[static_cast<size_t>(begin)];
      return figures;
    }
    const std::vector<int32_t> bounds = CutRange(begin, end, kept_per_level);
    Bytes kept;
    figures.overhead =
        time_before_[static_cast<size_t>(end)] - time_before_[static_cast<size_t>(begin)];
    for (size_t i = 0; i + 1 < bounds.size(); ++i) {
      if (i > 0) kept += end_memory_[static_cast<size_t>(bounds[i] - 1)];
      const PaperFigures inner = FiguresOf(bounds[i], bounds[i + 1], kept_per_level);
      figures.peak = std::max(figures.peak, inner.peak);
      figures.overhead += inner.overhead;
    }
    figures.peak += kept;
    return figures;
  }

  const Chain chain_;
  std::vector<Bytes> inner_memory_;  // Each block's memory without its splitting vertex.
  std::vector<Bytes> end_memory_;    // The memory of the splitting vertex that ends each block.
  std::vector<Cost> time_before_;    // [b] is the time of all blocks before b.
};

}  // namespace

Result<std::unique_ptr<PreparedSolver>> PrepareChenRecursive(const Problem& problem,
                                                             const SolveLimits&) {
  auto solver = std::make_unique<ChenRecursive>(problem);
  const int64_t crossings = solver->CountCrossings(problem.vertices);
  if (crossings > kMaxCrossings) {
    return MakeError(
        ErrorCode::kUnsupported,
        fmt::format("chen-recursive is limited to {} results crossing block boundaries; this graph "
                    "has {}; try chen-sqrt",
                    kMaxCrossings, crossings));
  }
  return std::unique_ptr<PreparedSolver>(std::move(solver));
}

}  // namespace ckplan
