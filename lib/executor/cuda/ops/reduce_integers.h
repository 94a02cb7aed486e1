// Reductions of integers, which occur in shape computations and are small.
#pragma once

#include <memory>

#include "lib/executor/cuda/registry.h"
#include "lib/problem/ops/layout.h"

namespace ckplan::cuda {

enum class IntegerKind { kNone, kSum, kMean, kProduct, kMax, kMin };

// `layout` is the layout of the input and the result; the strides of the result are 0 along the
// reduced axes. Fails with kUnsupported if the element type is not a supported integer type, or if
// the operator does not support integers (kNone).
Result<std::unique_ptr<PreparedOp>> PrepareIntegers(const OpSpec& spec, Device& device,
                                                    const Layout& layout, IntegerKind kind);

}  // namespace ckplan::cuda
