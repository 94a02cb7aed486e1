// The shape of Attention. Each head of queries looks at the keys of one head of keys; several heads
// of queries may share a head of keys.
#pragma once

#include <array>
#include <cstdint>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// A mask of numbers is added to the scores; a boolean mask is false where a key is hidden.
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

  // Returns how many query heads share the same keys and values.
  int64_t group() const { return heads / key_heads; }
  int64_t scores() const { return queries * keys; }  // Scores of one head.
};

Result<AttentionShape> ReadAttentionShape(const OpSpec& spec);

}  // namespace ckplan
