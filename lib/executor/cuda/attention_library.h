// Attention by a library: one call computes it forward, one its gradients.
//
//   S = scale Q Kᵀ + bias, without keys after the query if it is causal;  P = softmax(S);  Y = P V
//
// Only Y and, for each row, the logarithm of its sum of exponentials are kept between the calls.
#pragma once

#include <array>
#include <compare>
#include <cstdint>

#include "lib/executor/backend/backend.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan::cuda {

// A tensor [batch, heads, rows, elements]; the elements of a row lie side by side. Its strides are
// in elements.
struct LibraryRows {
  int64_t batch_stride = 0, head_stride = 0, row_stride = 0;

  auto operator<=>(const LibraryRows&) const = default;
};

// All tensors are bfloat16, but for the bias, if it is float32, and the logarithms, which are
// float32 [batch, heads, queries].
struct LibraryAttentionShape {
  int64_t batch = 1, heads = 1, queries = 1, keys = 1, size = 1, value_size = 1;
  LibraryRows q, k, v, y;  // Gradients lie as their tensors do.
  float scale = 1;
  bool is_causal = false;
  bool has_bias = false;
  ElementType bias_type = ElementType::kBFloat16;
  // The bias is [bias_batch, bias_heads, queries, keys], without gaps. 1 is broadcast.
  int64_t bias_batch = 1, bias_heads = 1;

  auto operator<=>(const LibraryAttentionShape&) const = default;
};

enum class AttentionPass { kForward, kBackward };

// Forward reads q, k, v and bias, and writes y and log_sums. Backward reads all of these and dy,
// and writes dq, dk and dv.
struct AttentionTensors {
  const void *q = nullptr, *k = nullptr, *v = nullptr, *bias = nullptr, *dy = nullptr;
  void *y = nullptr, *log_sums = nullptr;
  void *dq = nullptr, *dk = nullptr, *dv = nullptr;
};

// One pass of an attention, with a chosen engine.
class LibraryAttention {
 public:
  virtual ~LibraryAttention() = default;
  virtual const EngineChoice& choice() const = 0;
  int64_t workspace() const { return choice().workspace; }
  virtual void Run(const AttentionTensors& tensors, void* workspace) = 0;
};

}  // namespace ckplan::cuda
