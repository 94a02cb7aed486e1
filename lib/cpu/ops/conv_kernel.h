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

#include "lib/ops/window.h"

namespace ckplan::cpu {

struct ConvGeometry {
  int64_t batch = 1;
  int64_t groups = 1;
  int64_t in_channels = 1;   // Of x: [batch, in_channels, window.in...].
  int64_t out_channels = 1;  // Of y; w is [out_channels, in_channels / groups, kernel...].
  Window window;
};

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
std::unique_ptr<ConvKernel> MakeConvKernel(const ConvGeometry& geometry, ConvJob job);

// Null where it is no matrix product, or is better computed otherwise.
std::unique_ptr<ConvKernel> MakePointwiseConv(const ConvGeometry& geometry, ConvJob job);

// The gradient of the weights of many small groups, in the plain layout.
std::unique_ptr<ConvKernel> MakeGroupedWeights(const ConvGeometry& geometry);

}  // namespace ckplan::cpu
