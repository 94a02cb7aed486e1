// Algorithms that plan sequences of runs (lib/problem/schedule/replay.h). They plan a joint graph
// directly and a forward graph through its expansion, so one source serves both.
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

// What plans may move to the host, beside the graph that they are for.
struct OffloadTerms {
  Link link;
  std::optional<Bytes> host_budget;  // On the memory of the host for moved values.
  IdVector<ValueId, bool> may_move;  // MovableValues, less those that have to stay.
};

struct RunOutcome {
  std::vector<OpId> runs;   // A plan of the graph whose first runs are in the graph's own order.
  bool is_optimal = false;  // For this setting, in the class that `guarantee` names.
  std::string guarantee;
  // The runs with the transfers among them, if the plan moves values.
  std::optional<Schedule> schedule = {};
};

// The counterpart of PreparedSolver.
class PreparedRunSolver {
 public:
  virtual ~PreparedRunSolver() = default;
  virtual Knob knob() const = 0;
  // For a setting from knob().min to knob().max. Errors are those of PreparedSolver::Solve; there
  // is a plan at knob().min.
  virtual Result<RunOutcome> Solve(int64_t setting, const SolveLimits& limits) = 0;
};

// Runs the algorithm on the expansion (lib/problem/schedule/expand.h) of the problem's graph. The
// figures of the paper are the simulated ones.
Result<std::unique_ptr<PreparedSolver>> PrepareOnExpansion(const Problem& problem,
                                                           const SolveLimits& limits,
                                                           PrepareRuns prepare);

// Is a function of its own for each algorithm, as tables of algorithms need it.
template <PrepareRuns prepare>
Result<std::unique_ptr<PreparedSolver>> PrepareOnExpansion(const Problem& problem,
                                                           const SolveLimits& limits) {
  return PrepareOnExpansion(problem, limits, prepare);
}

}  // namespace ckplan
