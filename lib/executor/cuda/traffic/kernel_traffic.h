// What the kernels of this backend move and compute, derived from the shapes of an operator.
//
//   ForwardKernels(spec), BackwardKernels(spec, i)   the kernels of one call, in order
//
// Three counts of bytes are kept apart:
//
//   read, written   between the GPU's memory and the chip. A tensor that a kernel reads again soon
//                   counts once, because caches still hold it: the rows of a softmax or a layer
//                   normalisation. What a second kernel reads again counts again.
//   accessed        by the instructions of the kernel: what a player of kernels counts
//
// Partial results of reductions, tables of indices and other work that is small beside the tensors
// are left out. Operators without a row here are taken to read each operand and write each result
// once; IsModelled says which ones have a row.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/problem/ops/op_spec.h"

namespace ckplan::cuda {

// What computes: the vendor's libraries on tensor cores, or a kernel of ours.
enum class Engine : uint8_t { kVectorUnits, kMatrixUnits };

struct KernelTraffic {
  std::string_view kernel;
  int64_t read = 0, written = 0;  // Bytes.
  int64_t accessed = 0;           // Bytes; 0 for the libraries, whose kernels are not known.
  int64_t flops = 0;              // Only of products and convolutions.
  Engine engine = Engine::kVectorUnits;

  int64_t moved() const { return read + written; }
};

using Kernels = std::vector<KernelTraffic>;

Kernels ForwardKernels(const OpSpec& spec);
// The kernels that compute the gradient of the input at this position.
Kernels BackwardKernels(const OpSpec& spec, size_t position);
bool IsModelled(std::string_view type);

// What any kernels of this call must move: each operand that is read, and each result, once.
int64_t LeastForward(const OpSpec& spec);
// Returns the same for all gradients of the operator together.
int64_t LeastBackward(const OpSpec& spec);

}  // namespace ckplan::cuda
