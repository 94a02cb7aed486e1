// The part that the three solvers of Hong et al. 2024 share: it turns checkpoints of a layer list
// into an outcome.
#pragma once

#include <memory>
#include <string_view>

#include "lib/planning/algorithms/hong/checkpoint_selection.h"
#include "lib/planning/algorithms/hong/layer_list.h"
#include "lib/planning/plan/solver.h"

namespace ckplan {

// Returns a solver without a knob whose plan cuts the graph after each checkpoint. `scope` says
// among which choices the checkpoints are optimal. `result.paper` holds the objective and the
// forward cost of all nodes except the checkpoints.
std::unique_ptr<PreparedSolver> PlanFromCheckpoints(const Problem& problem, const LayerList& list,
                                                    const Checkpoints& checkpoints,
                                                    std::string_view scope);

}  // namespace ckplan
