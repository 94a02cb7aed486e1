// Finds the branches that training detaches: networks that round write x + (q(x) - x).detach(), so
// that the gradient of q is that of the identity, and exporters drop the detach.
//
//   x ──┬──▶ Div ──▶ Round ──▶ Mul ──▶ Sub ──▶ Add
//       ├───────────────────────────────┘       │     Div, Round, Mul and Sub have no gradient
//       └───────────────────────────────────────┘
#pragma once

#include <vector>

#include "lib/files/model/model_impl.h"

namespace ckplan {

// Returns for each operation whether it is in such a branch: a difference with x that is read only
// by a sum with the same x, and what only that difference reads, if something there rounds. O(n)
// for n operations, since branches do not overlap.
std::vector<bool> FindDetached(const Model::Impl& model);

}  // namespace ckplan
