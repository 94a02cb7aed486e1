// What the three solvers of Hong et al. 2024 share: checkpoints of a layer list as an outcome.
#pragma once

#include <memory>
#include <string_view>

#include "lib/algorithms/hong/checkpoint_selection.h"
#include "lib/algorithms/hong/layer_list.h"
#include "lib/plan/solver.h"

namespace ckplan {

// A solver without a knob whose plan cuts the graph behind each checkpoint. `scope` says what they
// are optimal for. `result.paper` holds the objective and the forward cost of everything that is no
// checkpoint.
std::unique_ptr<PreparedSolver> PlanFromCheckpoints(const Problem& problem, const LayerList& list,
                                                    const Checkpoints& checkpoints,
                                                    std::string_view scope);

}  // namespace ckplan
