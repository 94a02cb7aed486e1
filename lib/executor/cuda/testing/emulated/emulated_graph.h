// The emulated cuDNN's graphs of products, elementwise operations, reductions and reshapes
// (emulated_cudnn.cc): computed operation by operation, in simple loops, from their descriptors.
#pragma once

#include <functional>

#include "lib/executor/cuda/testing/emulated/emulated_descriptors.h"

namespace ckplan::cuda {

// True for an operation of such a graph.
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
