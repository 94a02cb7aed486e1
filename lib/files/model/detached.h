// Finds the branches that training detaches: quantized networks compute x + (q(x) - x).detach(), so
// that the gradient of q is that of the identity, and exporters drop the detach.
//
//   x ──┬──▶ Div ──▶ Round ──▶ Mul ──▶ Sub ──▶ Add
//       ├───────────────────────────────┘       │     Div, Round, Mul and Sub have no gradient
//       └───────────────────────────────────────┘
//
// Also an Identity that was PyTorch's detach, by the file's metadata (origin.h).
#pragma once

#include <vector>

#include "lib/files/model/model_impl.h"

namespace ckplan {

// Marks the operations in such branches: a difference with x that is read only by a sum with the
// same x, and everything that only this difference reads, if something in it rounds; and each
// Identity that was a detach. O(n) for n operations, because branches do not overlap.
std::vector<bool> FindDetached(const Model::Impl& model);

}  // namespace ckplan
