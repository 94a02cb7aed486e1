// Operators that save for backward what PyTorch's autograd saves. Kernels have one form of each
// operator: their backward reads what op_table.def lists under `minimal`. Where PyTorch saves
// something else, an operator around the kernel keeps that:
//
//   Dropout            a mask, written by the kernel's second output; backward draws it again
//   MaxPool            indices as int64, written and read as the kernel's second output
//   LeakyRelu, Div, …  the inputs; the output, which the kernel reads, is computed again from them
//
// What PyTorch saves and no kernel reads is a tensor that is kept, and nothing else.
#pragma once

#include <memory>

#include "lib/base/result.h"
#include "lib/executor/backend/backend.h"
#include "lib/problem/ops/autograd.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// Returns whether an operator of a step, whose spec is that of `autograd`, is more than a kernel.
bool SavesByItself(const OpSpec& spec, Autograd autograd);

// Prepares such an operator, or the kernel alone. kUnsupported: PyTorch saves something that no
// kernel can write.
Result<std::unique_ptr<PreparedOp>> PrepareSaving(Backend& backend, const OpSpec& spec,
                                                  Autograd autograd);

}  // namespace ckplan
