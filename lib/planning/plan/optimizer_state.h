// The memory of the optimizer's state, which is there throughout the step.
//
//   sgd        nothing
//   momentum   one value for each element of a gradient, of the gradient's type
//   adam       two such values; adamw keeps the same
//   adam8bit   two values of one byte each for each element, and for each block of 256 elements of
//              a tensor two float32 scales; tensors below 4096 elements have two float32 values
//              for each element instead. So it is in bitsandbytes 0.50.2 (Optimizer2State in
//              optim/optimizer.py).
//
// With master weights, each parameter that is stored in 16 bits has a copy in float32, which counts
// as state, and the optimizer's values for its elements are of float32.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/plan/request.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

// adam8bit scales this many elements of a tensor together.
inline constexpr int64_t kEightBitBlock = 256;
// adam8bit keeps the state of smaller tensors in float32.
inline constexpr int64_t kMinEightBitElements = 4096;

// Returns the size of the state that the request's optimizer keeps for these gradients. If only the
// sum of the gradients is known, adam8bit takes it for that of one float32 tensor, and no parameter
// for one in 16 bits.
Bytes OptimizerState(const PlanRequest& request, const Optimized& optimized);

// Returns the same as sizes of single buffers. Where only the sum of the gradients is known, there
// is one buffer.
std::vector<Bytes> OptimizerStateBuffers(const PlanRequest& request, const Optimized& optimized);

// Returns the sizes of the buffers that one step of the optimizer makes and frees once the state is
// there, all of which are live at once. PyTorch steps all parameters together by default
// ("foreach"): adam and adamw take a square root of one value for each element. With master
// weights, gradients in 16 bits have copies in float32. adam8bit's kernels make nothing.
std::vector<Bytes> OptimizerStepBuffers(const PlanRequest& request, const Optimized& optimized);

// Returns the sizes of the gradients that the optimizer reads.
std::vector<Bytes> GradientBuffers(const Optimized& optimized);

// Returns whether there is a parameter that is stored in 16 bits.
bool HasSixteenBits(const Optimized& optimized);

}  // namespace ckplan
