// Turns the plan of a model's step into a plan of its forward graph, for outputs in terms of the
// model: markers and modules to wrap.
#pragma once

#include <vector>

#include "lib/base/result.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/planner/source.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/expand.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// The result's steps are those of a forward graph: forward, the loss and backward. Its decisions
// and labels are those of the forward graph's nodes. Its figures are those of `plan`, and include
// arriving gradients. It has no offsets and no time of the peak, because its buffers differ. It has
// no copies to the host, so it may need more memory than `plan`. Without a joint graph, returns
// `plan` itself. `plan` must be a plan of the source, and the source must not be a joint graph
// file.
Plan ToModelForm(const Source& source, const Plan& plan);

// Does the same for a plan of the graph's expansion, where `step_of` is Expansion::step_of.
Plan ToModelForm(const TensorGraph& graph, const std::vector<Step>& step_of, const Plan& plan);

// Do the same, with copies to the host as steps of the forward graph. Return the errors of
// lib/problem/schedule/transfers.h.
Result<Plan> ToModelFormWithCopies(const Source& source, const Plan& plan);
Result<Plan> ToModelFormWithCopies(const TensorGraph& graph, const Expansion& expansion,
                                   const Plan& plan);

}  // namespace ckplan
