// The shape of Attention: heads of queries, each of which looks at the keys of one head of keys,
// which several heads of queries may share.
#pragma once

#include <array>
#include <cstdint>

#include "lib/base/result.h"
#include "lib/ops/families.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

// Added to the scores, or, if boolean, false where a key is hidden.
struct AttentionMask {
  bool is_present = false;
  ElementType type = ElementType::kFloat32;
  // Elements from one index to the next of [batch, heads, queries, keys]; 0 where it is broadcast.
  std::array<int64_t, 4> strides = {};

  bool is_bool() const { return type == ElementType::kBool; }
};

struct AttentionShape {
  // Tensors are [batch, heads, rows, size]; else [batch, rows, heads * size].
  bool is_head_major = false;
  int64_t batch = 1;
  int64_t heads = 1, key_heads = 1;  // The number of heads is a multiple of that of key heads.
  int64_t queries = 1, keys = 1;     // Rows of a head.
  int64_t size = 1, value_size = 1;  // Row lengths: of queries and keys; of values and outputs.
  AttentionMask mask;
  float scale = 1;
  bool is_causal = false;
  bool has_statistic = false;  // The probabilities are saved for backward.

  int64_t group() const { return heads / key_heads; }  // Heads that share keys and values.
  int64_t scores() const { return queries * keys; }    // Elements of one head.
};

Result<AttentionShape> ReadAttentionShape(const OpSpec& spec);

}  // namespace ckplan
