// The vendor libraries' operations: matrix products (cuBLAS), convolutions and attention (cuDNN).
// All other operations have kernels in this folder; docs/executor.md says why.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/base/result.h"
#include "lib/executor/backend/backend.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan::cuda {

// Attention in a library: one call computes the forward pass, one its gradients.
//
//   S = scale Q Kᵀ + bias, without keys after the query if it is causal;  P = softmax(S);  Y = P V
//
// Between the calls, only Y and the logarithm of each row's sum of exponentials are kept.

// A tensor [batch, heads, rows, elements] whose rows have adjacent elements. Strides are in
// elements.
struct LibraryRows {
  int64_t batch_stride = 0, head_stride = 0, row_stride = 0;

  auto operator<=>(const LibraryRows&) const = default;
};

// All tensors are bfloat16, except the bias, which may be float32, and the logarithms, which are
// float32 [batch, heads, queries].
struct LibraryAttentionShape {
  int64_t batch = 1, heads = 1, queries = 1, keys = 1, size = 1, value_size = 1;
  LibraryRows q, k, v, y;  // Gradients are laid out like their tensors.
  float scale = 1;
  bool is_causal = false;
  bool has_bias = false;
  ElementType bias_type = ElementType::kBFloat16;
  // The bias is a dense [bias_batch, bias_heads, queries, keys]. Size 1 is broadcast.
  int64_t bias_batch = 1, bias_heads = 1;

  auto operator<=>(const LibraryAttentionShape&) const = default;
};

enum class AttentionPass { kForward, kBackward };

// Forward reads q, k, v and bias, and writes y and log_sums. Backward also reads these and dy, and
// writes dq, dk and dv.
struct AttentionTensors {
  const void *q = nullptr, *k = nullptr, *v = nullptr, *bias = nullptr, *dy = nullptr;
  void *y = nullptr, *log_sums = nullptr;
  void *dq = nullptr, *dk = nullptr, *dv = nullptr;
};

// One pass of an attention with a chosen engine.
class LibraryAttention {
 public:
  virtual ~LibraryAttention() = default;
  virtual const EngineChoice& choice() const = 0;
  int64_t workspace() const { return choice().workspace; }
  virtual void Run(const AttentionTensors& tensors, void* workspace) = 0;
};

// A row-major matrix in memory.
struct MatrixView {
  ElementType type = ElementType::kFloat32;  // Or kBFloat16.
  bool is_transposed = false;                // The rows in memory are the operand's columns.
  int64_t row_stride = 0;                    // Elements between starts of rows in memory.
  int64_t batch_stride = 0;  // Elements between matrices of the batch; 0 to share one matrix.
};

// C = alpha A B + beta C for each index of `batch`; A is m x k, B is k x n. A and B have the same
// type; C has that type or float32. Sums are computed in float32.
struct GemmShape {
  int64_t batch = 1;
  int64_t m = 0, n = 0, k = 0;
  MatrixView a, b, c;  // c is not transposed.
  float alpha = 1, beta = 0;
};

// A convolution with two or three spatial axes, described by its forward pass:
//
//   x [batch, groups * in_channels, in...]    w [groups * out_channels, in_channels, kernel...]
//   y [batch, groups * out_channels, out...]
//
// All tensors have the same type and order; sums are computed in float32.
struct ConvolutionShape {
  ElementType type = ElementType::kFloat32;
  bool is_channels_last = false;  // Includes the weights. Only with two spatial axes.
  int64_t batch = 1, groups = 1;
  int64_t in_channels = 1, out_channels = 1;  // Per group.
  // One entry per spatial axis. `pads` applies to both sides.
  std::vector<int64_t> in, out, kernel, strides, dilations, pads;

  auto operator<=>(const ConvolutionShape&) const = default;
};

enum class ConvPass { kForward, kBackwardData, kBackwardWeights };

// One pass of a convolution with a chosen engine.
class Convolution {
 public:
  virtual ~Convolution() = default;
  virtual const EngineChoice& choice() const = 0;
  int64_t workspace() const { return choice().workspace; }
  // Reads two of the tensors and writes the third (y, x or w, depending on the pass).
  virtual void Run(void* x, void* w, void* y, void* workspace) = 0;
};

class Libraries {
 public:
  virtual ~Libraries() = default;

  virtual int64_t GemmWorkspace(const GemmShape& shape) const = 0;
  virtual void Gemm(const GemmShape& shape, const void* a, const void* b, void* c,
                    void* workspace) = 0;
  // Fails with kUnsupported if no deterministic engine fits in the workspace limit.
  virtual Result<std::unique_ptr<Convolution>> PrepareConvolution(const ConvolutionShape& shape,
                                                                  ConvPass pass) = 0;
  // Fails with kUnsupported if no deterministic engine supports the shape within the workspace
  // limit.
  virtual Result<std::unique_ptr<LibraryAttention>> PrepareAttention(
      const LibraryAttentionShape& shape, AttentionPass pass) = 0;
};

}  // namespace ckplan::cuda
