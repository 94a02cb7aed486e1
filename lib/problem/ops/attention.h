// Shapes of attention, of fused attention and of rotary embeddings.
#pragma once

#include <array>
#include <cstdint>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// The shape of Attention. Each query head attends to one key head; several query heads may share a
// key head.
//

// A numeric mask is added to the scores; a boolean mask is false where a key is hidden.
struct AttentionMask {
  bool is_present = false;
  ElementType type = ElementType::kFloat32;
  // Strides in elements along [batch, heads, queries, keys]; 0 where the mask is broadcast.
  std::array<int64_t, 4> strides = {};

  bool is_bool() const { return type == ElementType::kBool; }
};

struct AttentionShape {
  // True if tensors are [batch, heads, rows, size], false if they are [batch, rows, heads * size].
  bool is_head_major = false;
  int64_t batch = 1;
  // The number of heads is a multiple of the number of key heads.
  int64_t heads = 1, key_heads = 1;
  int64_t queries = 1, keys = 1;  // Rows of each head.
  // Lengths of rows: `size` for queries and keys, `value_size` for values and outputs.
  int64_t size = 1, value_size = 1;
  AttentionMask mask;
  float scale = 1;
  bool is_causal = false;
  bool has_statistic = false;  // The probabilities are saved for backward.

  // The number of query heads that share keys and values.
  int64_t group() const { return heads / key_heads; }
  int64_t scores() const { return queries * keys; }  // Scores of one head.
};

Result<AttentionShape> ReadAttentionShape(const OpSpec& spec);

// The shape of FusedAttention, ckplan's own operator for attention that a model spells out in
// single operators. It reads queries, keys and values before the model transposes their heads.
//
//   scores = scale Q Kᵀ, then the mask and the bias;  Y = softmax(scores) V
//
// Inputs are Q, K, V and, optionally, mask and bias; the output is Y. Attributes:
//
//   batch, heads, key_heads, queries, keys, size, value_size   as in AttentionShape
//   q_axes, k_axes, v_axes, y_axes   order of axes in memory, by their letters: b for the batch, h
//                                    for heads, s for rows, d for the elements of a row, which are
//                                    last; "bhsd" by default
//   mask_dims, bias_dims   sizes of the mask and the bias along batch, heads, queries and keys.
//   Size
//                          1 is broadcast; fewer samples than the batch's are repeated
//   mask_hides   1: a boolean mask is true where a key is hidden, not where it is seen
//   fill         the score of hidden keys; -infinity by default
//   scale, is_causal   as in ONNX's Attention
//   dropout      the ratio of dropped probabilities, drawn with the step's seed; 0 by default
//
// Forward saves only the logarithm of each row's sum of exponentials. Backward recomputes the
// scores from Q, K, mask and bias, and also reads V and Y.
//
// The longest rows of queries and values: kernels hold a row of each in fast memory.
inline constexpr int64_t kMaxAttentionSize = 128;

// A mask or a bias. Numbers are added to the scores; booleans hide keys.
struct AttentionTerm {
  bool is_present = false;
  ElementType type = ElementType::kFloat32;
  bool hides = false;   // For booleans: true elements hide keys.
  int64_t samples = 1;  // Sample n of the batch uses sample n % samples of the term.
  std::array<int64_t, 4> dims = {};
  // In elements, along samples, heads, queries and keys; 0 where the term is broadcast.
  std::array<int64_t, 4> strides = {};

  bool is_bool() const { return type == ElementType::kBool; }
};

// The positions of a tensor's rows in memory; strides are in elements.
struct HeadRows {
  int64_t batch_stride = 0, head_stride = 0, row_stride = 0;

  int64_t at(int64_t sample, int64_t head) const {
    return sample * batch_stride + head * head_stride;
  }
};

struct FusedAttentionShape {
  int64_t batch = 1, heads = 1, key_heads = 1, queries = 1, keys = 1, size = 1, value_size = 1;
  HeadRows q, k, v, y;
  AttentionTerm mask, bias;
  float scale = 1;
  float fill = 0;
  double dropout = 0;
  bool is_causal = false;
  bool has_statistic = false;  // Forward saves the logarithms for backward.

  int64_t group() const { return heads / key_heads; }  // Heads that share keys and values.
  int64_t rows() const { return batch * heads * queries; }
};

Result<FusedAttentionShape> ReadFusedAttentionShape(const OpSpec& spec);

// The shape of RotaryEmbedding, which rotates pairs of features by an angle that grows with the
// position.
struct RotaryShape {
  int64_t batch = 1, heads = 1, length = 1, features = 1;
  // The number of rotated features, which is even. The others are copied.
  int64_t rotated = 1;
  // True if the tensor is [batch, heads, length, features], false if it is [batch, length, heads,
  // features].
  bool is_head_major = false;
  // True if the two features of a pair are neighbours, false if they are rotated / 2 apart.
  bool is_interleaved = false;
  // The number of positions in the caches; 0 if they have a row for each token.
  int64_t cache_rows = 0;

  int64_t rows() const { return batch * heads * length; }
};

Result<RotaryShape> ReadRotaryShape(const OpSpec& spec);

}  // namespace ckplan
