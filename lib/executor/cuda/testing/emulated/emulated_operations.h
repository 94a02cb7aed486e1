// What the emulated cuDNN (emulated_cudnn.cc) computes, in simple loops, from its descriptors:
// convolutions (emulated_convolution.cc), and graphs of products, elementwise operations,
// reductions and reshapes, operation by operation (emulated_graph.cc).
#pragma once

#include <functional>

#include "lib/executor/cuda/libraries.h"
#include "lib/executor/cuda/testing/emulated/emulated_descriptors.h"

namespace ckplan::cuda {

// Computes one pass of a convolution, with sums in double precision: reads two of the tensors and
// writes the third.
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

// True for an operation of a graph.
bool IsEmulatedGraphOperation(cudnnBackendDescriptorType_t kind);

// Ends the program if the shapes of an operation's tensors don't match.
void CheckEmulatedGraphOperation(const EmulatedDescriptor& operation);

// Returns the size of the bfloat16 results that an engine keeps because it reads them in two
// orders: dS in the graph of attention gradients, otherwise nothing.
int64_t KeptBytesOfEmulatedGraph(const EmulatedDescriptor& graph);

// Returns the work of a graph. Looks up addresses immediately; the work accesses memory when it
// runs.
std::function<void()> BindEmulatedGraph(const EmulatedDescriptor& graph,
                                        const EmulatedPointers& pointer_of);

}  // namespace ckplan::cuda
