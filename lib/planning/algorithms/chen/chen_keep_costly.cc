#include "lib/planning/algorithms/chen/chen_keep_costly.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/planning/algorithms/chen/greedy_cut.h"

namespace ckplan {
namespace {

class ChenKeepCostly : public PreparedSolver {
 public:
  explicit ChenKeepCostly(const Problem& problem)
      : vertices_(problem.vertices), chain_(FindChain(problem.graph, problem.vertices)) {
    for (const NodeId v : vertices_.ids()) costly_first_.push_back(v);
    std::stable_sort(costly_first_.begin(), costly_first_.end(),
                     [&](NodeId a, NodeId b) { return SavesMoreForEachByte(a, b); });
  }

  Knob knob() const override {
    return {Knob::Kind::kSegmentBudget, 0, vertices_.total_memory().count(),
            EstimateSegmentBudget(chain_, vertices_).count()};
  }

  Result<SolveOutcome> Solve(int64_t budget, const SolveLimits&) override {
    const GreedyCut cut = CutGreedily(chain_, vertices_, Bytes(budget));
    KeptSet kept{KeptByCuts(cut)};
    Bytes for_costly;
    Cost saved;
    for (const NodeId v : costly_first_) {
      const Bytes memory = vertices_.memory(v);
      if (kept.is_kept[v] || for_costly + memory > Bytes(budget)) continue;
      kept.is_kept[v] = true;
      for_costly += memory;
      saved += vertices_.time(v);
    }
    SolveOutcome outcome;
    outcome.strategy = std::move(kept);
    outcome.paper = {Bytes(budget), cut.kept + for_costly + cut.largest_segment,
                     vertices_.total_time() - cut.kept_time - saved};
    outcome.guarantee = "heuristic: segments are closed past B bytes, costly results kept up to B";
    return outcome;
  }

 private:
  // Returns the results at the cuts, and the last segment.
  IdVector<NodeId, bool> KeptByCuts(const GreedyCut& cut) const {
    IdVector<NodeId, bool> is_kept(vertices_.size());
    const std::vector<int32_t>& segments = cut.segment_of_block;
    for (const NodeId v : vertices_.ids()) {
      const auto block = static_cast<size_t>(chain_.block_of[v]);
      is_kept[v] = segments[block] == cut.segment_count - 1;
    }
    for (size_t block = 0; block + 1 < segments.size(); ++block) {
      if (segments[block + 1] != segments[block]) is_kept[chain_.splitting[block]] = true;
    }
    return is_kept;
  }

  // Returns whether T_a / M_a > T_b / M_b, without dividing. Results without bytes come first.
  bool SavesMoreForEachByte(NodeId a, NodeId b) const {
    __extension__ using Wide = __int128;
    const bool is_free = vertices_.memory(a) == Bytes(0);
    const bool is_other_free = vertices_.memory(b) == Bytes(0);
    if (is_free || is_other_free) return is_free && !is_other_free;
    return static_cast<Wide>(vertices_.time(a).count()) * vertices_.memory(b).count() >
           static_cast<Wide>(vertices_.time(b).count()) * vertices_.memory(a).count();
  }

  const VertexGraph& vertices_;
  const Chain chain_;
  std::vector<NodeId> costly_first_;
};

}  // namespace

Result<std::unique_ptr<PreparedSolver>> PrepareChenKeepCostly(const Problem& problem,
                                                              const SolveLimits&) {
  return std::unique_ptr<PreparedSolver>(new ChenKeepCostly(problem));
}

}  // namespace ckplan
