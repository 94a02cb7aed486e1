// The plan of a model's step as a plan of the model's forward graph, for what is said in terms of
// the model: markers in the model, modules to wrap.
#pragma once

#include "lib/plan/plan.h"
#include "lib/planner/source.h"

namespace ckplan {

// Steps run forward, the loss and backward; decisions and labels are of the forward graph's nodes.
// Figures are those of the plan, which counts arriving gradients. It has neither offsets nor a
// moment of the peak, whose buffers are the step's. The plan itself where gradients do not arrive.
// `plan` is one of the source, which is no joint graph of its own.
Plan InModelForm(const Source& source, const Plan& plan);

}  // namespace ckplan
