#include "lib/algorithms/best/best.h"

#include <algorithm>
#include <utility>

#include "lib/algorithms/best/moment_loop.h"
#include "lib/base/stop.h"
#include "lib/joint/simulate_runs.h"
#include "lib/mip/mip.h"

namespace ckplan {
namespace {

class Solver {
 public:
  Solver(const JointGraph& graph, const BestOptions& options)
      : graph_(graph), problem_(graph), options_(options), simulator_(graph) {}

  Result<BestOutcome> Run() && {
    try {
      CKPLAN_RETURN_IF_ERROR(Search());
    } catch (const Stopped&) {
      if (!outcome_.runs) throw;
    }
    return std::move(outcome_);
  }

 private:
  Result<Done> Search() {
    Offer(OwnOrder(graph_), "own order");
    for (const Runs& start : options_.starts) Offer(start, "start");
    if (IsDone()) return Done{};
    if (HasMipSolver()) CKPLAN_RETURN_IF_ERROR(SolveOwnOrder());
    return Done{};
  }

  // Takes the runs if they fit and are cheaper than what there is.
  void Offer(Runs runs, std::string_view part) {
    const Result<RunSimulation> simulation = simulator_.Run(runs);
    CKPLAN_CHECK(simulation.ok(), "the parts of best make valid plans");
    if (simulation->peak.count() > options_.budget) return;
    const int64_t overhead = simulation->cost.count() - problem_.total_cost;
    if (outcome_.runs && outcome_.overhead <= overhead) return;
    outcome_.runs = std::move(runs);
    outcome_.overhead = overhead;
    outcome_.part = part;
    outcome_.is_optimal = overhead <= outcome_.lower_bound;
  }

  void RaiseBound(int64_t bound, BoundScope scope) {
    if (bound <= outcome_.lower_bound) return;
    outcome_.lower_bound = bound;
    outcome_.scope = scope;
    outcome_.is_optimal = outcome_.runs && outcome_.overhead <= bound;
  }

  bool IsDone() const { return outcome_.is_optimal || outcome_.is_infeasible; }

  Result<Done> SolveOwnOrder() {
    LoopLimits limits;
    limits.lp_iterations = options_.work.simplex / std::max<int64_t>(problem_.op_count, 1);
    limits.rounds = options_.work.rounds;
    const Runs order = OwnOrder(graph_);
    CKPLAN_ASSIGN_OR_RETURN(LoopOutcome loop,
                            SolveMomentLoop(graph_, problem_, order, options_.budget, limits));
    if (loop.runs) Offer(*std::move(loop.runs), "moments");
    RaiseBound(loop.lower_bound, BoundScope::kOwnOrder);
    if (loop.is_infeasible && !outcome_.runs) {
      outcome_.is_infeasible = true;
      outcome_.scope = BoundScope::kOwnOrder;
    }
    return Done{};
  }

  const JointGraph& graph_;
  const RunProblem problem_;
  const BestOptions& options_;
  RunSimulator simulator_;
  BestOutcome outcome_;
};

}  // namespace

Result<BestOutcome> SolveBest(const JointGraph& graph, const BestOptions& options) {
  return Solver(graph, options).Run();
}

}  // namespace ckplan
