// The memory of the optimizer's state, which is in memory throughout the step.
//
//   sgd        nothing
//   momentum   one value per element of a gradient, of the gradient's type
//   adam       two such values; also adamw
//   adam8bit   two one-byte values per element, and two float32 scales per block of 256 elements;
//              tensors with fewer than 4096 elements use two float32 values per element instead, as
//              in bitsandbytes 0.50.2 (Optimizer2State in optim/optimizer.py)
//
// With master weights, each parameter stored in 16 bits has a float32 copy, which counts as state,
// and the optimizer's values for it are float32.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/plan/request.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

// adam8bit scales blocks of this many elements.
inline constexpr int64_t kEightBitBlock = 256;
// adam8bit keeps smaller tensors' state in float32.
inline constexpr int64_t kMinEightBitElements = 4096;

// Returns the size of the optimizer's state for these gradients. If only their total size is known,
// adam8bit treats it as one float32 tensor, and no parameter counts as stored in 16 bits.
Bytes OptimizerState(const PlanRequest& request, const Optimized& optimized);

// Returns the same as buffer sizes; one buffer if only the gradients' total size is known.
std::vector<Bytes> OptimizerStateBuffers(const PlanRequest& request, const Optimized& optimized);

// Returns the sizes of the temporary buffers of one optimizer step after the first. All are live at
// once. PyTorch updates all parameters together by default ("foreach"), and adam and adamw take the
// square root of one value per element. With master weights, 16-bit gradients have float32 copies.
// adam8bit's kernels allocate nothing.
std::vector<Bytes> OptimizerStepBuffers(const PlanRequest& request, const Optimized& optimized);

// Returns the sizes of the gradients that the optimizer reads.
std::vector<Bytes> GradientBuffers(const Optimized& optimized);

// True if a parameter is stored in 16 bits.
bool HasSixteenBits(const Optimized& optimized);

}  // namespace ckplan
