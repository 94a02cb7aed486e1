// Algorithms that plan sequences of runs (lib/problem/schedule/replay.h). They plan joint graphs
// directly and forward graphs through their expansion, so one implementation serves both.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/plan/knob.h"
#include "lib/planning/plan/solver.h"
#include "lib/problem/cost/link.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// What a graph's plans may move to the host.
struct OffloadTerms {
  Link link;
  std::optional<Bytes> host_budget;  // Limit on host memory for moved values.
  IdVector<ValueId, bool> may_move;  // MovableValues without those that must stay.
};

struct RunOutcome {
  std::vector<OpId> runs;   // A plan that first runs operations in the graph's order.
  bool is_optimal = false;  // For this setting, in the class that `guarantee` names.
  std::string guarantee;
  // The runs together with transfers, if the plan moves values.
  std::optional<Schedule> schedule = {};
};

// The counterpart of PreparedSolver.
class PreparedRunSolver {
 public:
  virtual ~PreparedRunSolver() = default;
  virtual Knob knob() const = 0;
  // Solves for a setting from knob().min to knob().max. Errors are those of PreparedSolver::Solve.
  // A plan exists at knob().min.
  virtual Result<RunOutcome> Solve(int64_t setting, const SolveLimits& limits) = 0;
};

// Runs the algorithm on the expansion (lib/problem/schedule/expand.h) of the problem's graph. The
// paper's figures are the simulated ones.
Result<std::unique_ptr<PreparedSolver>> PrepareOnExpansion(const Problem& problem,
                                                           const SolveLimits& limits,
                                                           PrepareRuns prepare);

// A separate function for each algorithm, for the tables of algorithms.
template <PrepareRuns prepare>
Result<std::unique_ptr<PreparedSolver>> PrepareOnExpansion(const Problem& problem,
                                                           const SolveLimits& limits) {
  return PrepareOnExpansion(problem, limits, prepare);
}

}  // namespace ckplan
