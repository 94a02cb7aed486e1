// The three computations of a convolution and its gradients: y from x and w, x from w and y, w from
// x and y. A transposed convolution uses the second for forward and the others for backward.
//
// Tensors are in ONNX's plain layout. The kernel is chosen by measured speed:
//   pointwise   a 1x1 kernel on a large enough image is a matrix product per sample.
//   grouped     the weight gradient of groups that oneDNN has no kernel for.
//   blocked     everything else, in the layout that oneDNN prefers. The tensors are converted to it
//               and back a few samples at a time: enough to amortise converting the weights, few
//               enough that the copies stay in the cache and the workspace small.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/problem/ops/sliding.h"

namespace ckplan::cpu {

enum class ConvJob : uint8_t { kForward, kBackwardData, kBackwardWeights };

class ConvKernel {
 public:
  virtual ~ConvKernel() = default;
  virtual int64_t workspace() const = 0;
  // kForward: y from (x, w). kBackwardData: x from (w, y). kBackwardWeights: w from (x, y).
  virtual void Run(const float* first, const float* second, float* result,
                   void* workspace) const = 0;
};

// Throws oneDNN's exceptions.
std::unique_ptr<ConvKernel> MakeConvKernel(const ConvShape& shape, ConvJob job);

// Returns null if the convolution is not a matrix product, or another kernel is faster.
std::unique_ptr<ConvKernel> MakePointwiseConv(const ConvShape& shape, ConvJob job);

// Computes the weight gradient of many small groups, in the plain layout.
std::unique_ptr<ConvKernel> MakeGroupedWeights(const ConvShape& shape);

}  // namespace ckplan::cpu
