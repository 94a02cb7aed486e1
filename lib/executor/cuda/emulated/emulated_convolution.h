// Convolutions of the replaced cuDNN (emulated_cudnn.cc), as their descriptors say.
#pragma once

#include <functional>

#include "lib/executor/cuda/emulated/emulated_descriptors.h"
#include "lib/executor/cuda/libraries.h"

namespace ckplan::cuda {

// Convolutions in plain loops, with sums in double precision. Only tests use them.

// Does one pass of the convolution: reads two of the tensors and writes the third.
void RunPlainConvolution(const ConvolutionShape& shape, ConvPass pass, void* x, void* w, void* y);

// Whether the kind is an operation of one pass of a convolution.
bool IsEmulatedConvolution(cudnnBackendDescriptorType_t kind);

// End the program if the descriptor breaks a rule.
void CheckEmulatedConvolution(const EmulatedDescriptor& convolution);
void CheckEmulatedConvolutionOperation(const EmulatedDescriptor& operation);

// Returns the work of an operation. An engine that is not deterministic changes bits of the result.
std::function<void()> WorkOfEmulatedConvolution(const EmulatedDescriptor& operation,
                                                const EmulatedPointers& pointer_of,
                                                bool is_deterministic);

}  // namespace ckplan::cuda
