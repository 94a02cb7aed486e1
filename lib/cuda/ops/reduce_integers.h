// Reductions of integers: the glue of a model.
#pragma once

#include <memory>

#include "lib/cuda/registry.h"
#include "lib/ops/layout.h"

namespace ckplan::cuda {

enum class IntegerKind { kNone, kSum, kMean, kProduct, kMax, kMin };

// `layout`: of the input and the result, which stands still along the reduced axes.
// kUnsupported: the element type is none of these, or the operator is not for integers (kNone).
Result<std::unique_ptr<PreparedOp>> PrepareIntegers(const OpSpec& spec, Device& device,
                                                    const Layout& layout, IntegerKind kind);

}  // namespace ckplan::cuda
