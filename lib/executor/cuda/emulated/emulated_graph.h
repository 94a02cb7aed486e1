// Graphs of products, elementwise operations, reductions and reshapes, as the replaced cuDNN
// computes them (emulated_cudnn.cc): operation by operation, in plain loops, as the descriptors
// say.
#pragma once

#include <functional>

#include "lib/executor/cuda/emulated/emulated_descriptors.h"

namespace ckplan::cuda {

// Whether the operation is one of such a graph.
bool IsEmulatedGraphOperation(cudnnBackendDescriptorType_t kind);

// Ends the program if the tensors of an operation do not fit each other.
void CheckEmulatedGraphOperation(const EmulatedDescriptor& operation);

// Returns the bytes that an engine keeps of a graph's results of bfloat16 that it reads in two
// orders: dS, where the graph is that of an attention's gradients, and nothing otherwise.
int64_t KeptBytesOfEmulatedGraph(const EmulatedDescriptor& graph);

// Returns the work of a graph. Addresses are asked for at once; the work reads and writes memory
// when it is done.
std::function<void()> BindEmulatedGraph(const EmulatedDescriptor& graph,
                                        const EmulatedPointers& pointer_of);

}  // namespace ckplan::cuda
