// The three computations that a convolution and its gradients are: y from x and w, x from w and y,
// w from x and y. A transposed convolution is the second one forward, and the others backward.
//
// Tensors lie as ONNX has them, plain. The kernel chooses by what was measured:
//   pointwise   a kernel of 1x1 on a large enough image is a matrix product, for each sample.
//   grouped     the weights of groups that oneDNN has no kernel for.
//   blocked     all else in the layout that oneDNN likes best. The tensors are brought into it and
//               back a few samples at a time: enough to be worth the weights, few enough that the
//               copies stay in the cache and the workspace small.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/ops/conv.h"

namespace ckplan::cpu {

enum class ConvJob : uint8_t { kForward, kBackwardData, kBackwardWeights };

class ConvKernel {
 public:
  virtual ~ConvKernel() = default;
  virtual int64_t workspace() const = 0;
  // kForward: y of (x, w). kBackwardData: x of (w, y). kBackwardWeights: w of (x, y).
  virtual void Run(const float* first, const float* second, float* result,
                   void* workspace) const = 0;
};

// Throws what oneDNN throws.
std::unique_ptr<ConvKernel> MakeConvKernel(const ConvShape& shape, ConvJob job);

// Null where it is no matrix product, or is better computed otherwise.
std::unique_ptr<ConvKernel> MakePointwiseConv(const ConvShape& shape, ConvJob job);

// The gradient of the weights of many small groups, in the plain layout.
std::unique_ptr<ConvKernel> MakeGroupedWeights(const ConvShape& shape);

}  // namespace ckplan::cpu
