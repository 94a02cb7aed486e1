#include "lib/planning/algorithms/chen/chen_greedy.h"

#include "lib/planning/algorithms/chen/greedy_cut.h"
#include "lib/planning/algorithms/chen/greedy_plan.h"

namespace ckplan {
namespace {

class ChenGreedy : public PreparedSolver {
 public:
  explicit ChenGreedy(const Problem& problem)
      : problem_(problem), chain_(FindChain(problem.graph, problem.vertices)) {}

  Knob knob() const override {
    return {Knob::Kind::kSegmentBudget, 0, problem_.vertices.total_memory().count(),
            EstimateSegmentBudget(chain_, problem_.vertices).count()};
  }

  Result<SolveOutcome> Solve(int64_t budget, const SolveLimits&) override {
    return GreedyPlan(problem_, chain_, Bytes(budget));
  }

 private:
  const Problem& problem_;
  const Chain chain_;
};

}  // namespace

Result<std::unique_ptr<PreparedSolver>> PrepareChenGreedy(const Problem& problem,
                                                          const SolveLimits&) {
  return std::unique_ptr<PreparedSolver>(new ChenGreedy(problem));
}

}  // namespace ckplan
