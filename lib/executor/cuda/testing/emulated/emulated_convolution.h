// The emulated cuDNN's convolutions (emulated_cudnn.cc), built from their descriptors.
#pragma once

#include <functional>

#include "lib/executor/cuda/libraries.h"
#include "lib/executor/cuda/testing/emulated/emulated_descriptors.h"

namespace ckplan::cuda {

// Convolutions in simple loops, with sums in double precision. Only tests use them.

// Computes one pass of the convolution: reads two of the tensors and writes the third.
void RunPlainConvolution(const ConvolutionShape& shape, ConvPass pass, void* x, void* w, void* y);

// True for an operation that computes one pass of a convolution.
bool IsEmulatedConvolution(cudnnBackendDescriptorType_t kind);

// End the program if the descriptor breaks a rule.
void CheckEmulatedConvolution(const EmulatedDescriptor& convolution);
void CheckEmulatedConvolutionOperation(const EmulatedDescriptor& operation);

// Returns the work of an operation. A nondeterministic engine flips bits of the result.
std::function<void()> BindEmulatedConvolution(const EmulatedDescriptor& operation,
                                              const EmulatedPointers& pointer_of,
                                              bool is_deterministic);

}  // namespace ckplan::cuda
