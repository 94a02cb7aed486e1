// Turns the plan of a model's step into a plan of the model's forward graph, for outputs in terms
// of the model: markers in the model and modules to wrap.
#pragma once

#include <vector>

#include "lib/base/result.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/planner/source.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/expand.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// The steps of the result are those of a forward graph: forward, the loss and backward. Its
// decisions and labels are those of the forward graph's nodes. Its figures are those of `plan`,
// which counts arriving gradients. It has no offsets and no moment of the peak, since their
// buffers are those of the step. It has no copies to the host, so it may need more memory than
// `plan`. If the source has no joint graph, returns `plan` itself. `plan` must be a plan of the
// source, and the source must not be the file of a joint graph.
Plan InModelForm(const Source& source, const Plan& plan);

// Does the same for a plan of the graph's expansion, whose operations are these steps
// (Expansion::step_of).
Plan InModelForm(const TensorGraph& graph, const std::vector<Step>& step_of, const Plan& plan);

// Do the same, with copies to the host as steps of the forward graph
// (lib/problem/schedule/transfers.h), whose errors these are.
Result<Plan> InModelFormWithCopies(const Source& source, const Plan& plan);
Result<Plan> InModelFormWithCopies(const TensorGraph& graph, const Expansion& expansion,
                                   const Plan& plan);

}  // namespace ckplan
