// What is taken from the vendor's libraries: products of matrices (cuBLAS) and convolutions
// (cuDNN). All else is in kernels of our own; docs/executor.md says why.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/base/result.h"
#include "lib/ops/op_spec.h"

namespace ckplan::cuda {

// A row-major matrix in memory.
struct MatrixView {
  ElementType type = ElementType::kFloat32;  // Or kBFloat16.
  bool is_transposed = false;  // The rows in memory are the columns of the product's operand.
  int64_t row_stride = 0;      // Elements from one row in memory to the next.
  int64_t batch_stride = 0;    // From one matrix of the batch to the next; 0: all read the same.
};

// C = alpha A B + beta C for each of `batch`; A is m x k, B is k x n. A and B have one type; C has
// that, or float32. Sums are in float32.
struct GemmShape {
  int64_t batch = 1;
  int64_t m = 0, n = 0, k = 0;
  MatrixView a, b, c;  // c is not transposed.
  float alpha = 1, beta = 0;
};

// A convolution of two spatial axes or three, as the forward pass sees it:
//
//   x [batch, groups * in_channels, in...]    w [groups * out_channels, in_channels, kernel...]
//   y [batch, groups * out_channels, out...]
//
// All tensors are of one type, sums are in float32.
struct ConvolutionShape {
  ElementType type = ElementType::kFloat32;
  int64_t batch = 1, groups = 1;
  int64_t in_channels = 1, out_channels = 1;  // Of one group.
  // By spatial axis. `pads` is on either side.
  std::vector<int64_t> in, out, kernel, strides, dilations, pads;
};

enum class ConvPass { kForward, kBackwardData, kBackwardWeights };

// One pass of a convolution, its algorithm chosen.
class Convolution {
 public:
  virtual ~Convolution() = default;
  virtual int64_t workspace() const = 0;  // Bytes.
  // Reads two of the tensors and writes the third: y, x or w, as the pass says.
  virtual void Run(void* x, void* w, void* y, void* workspace) = 0;
};

class Libraries {
 public:
  virtual ~Libraries() = default;

  virtual int64_t GemmWorkspace(const GemmShape& shape) const = 0;
  virtual void Gemm(const GemmShape& shape, const void* a, const void* b, void* c,
                    void* workspace) = 0;
  // kUnsupported: no deterministic algorithm fits into the limit of the workspace.
  virtual Result<std::unique_ptr<Convolution>> PrepareConvolution(const ConvolutionShape& shape,
                                                                  ConvPass pass) = 0;
};

}  // namespace ckplan::cuda
