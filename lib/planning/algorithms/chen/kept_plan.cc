#include "lib/planning/algorithms/chen/kept_plan.h"

#include <utility>

namespace ckplan {

SolveOutcome PlanOfKept(const Problem& problem, IdVector<NodeId, bool> is_kept,
                        std::string guarantee) {
  SolveOutcome outcome;
  for (const NodeId v : problem.vertices.ids()) {
    if (is_kept[v]) {
      outcome.paper.peak += problem.vertices.memory(v);
    } else {
      outcome.paper.overhead += problem.vertices.time(v);
    }
  }
  outcome.strategy = KeptSet{std::move(is_kept)};
  outcome.guarantee = std::move(guarantee);
  return outcome;
}

}  // namespace ckplan
