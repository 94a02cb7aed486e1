// The shape of RotaryEmbedding: pairs of features are rotated by an angle that grows with the
// position.
#pragma once

#include <cstdint>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

struct RotaryShape {
  int64_t batch = 1, heads = 1, length = 1, features = 1;
  // How many features are rotated; an even number. The others are copied.
  int64_t rotated = 1;
  // True if the tensor is [batch, heads, length, features], false if it is [batch, length, heads,
  // features].
  bool is_head_major = false;
  // True if the two features of a pair are neighbours, false if they are rotated / 2 apart.
  bool is_interleaved = false;
  // Number of positions in the caches; 0 if they have a row for each token.
  int64_t cache_rows = 0;

  int64_t rows() const { return batch * heads * length; }
};

Result<RotaryShape> ReadRotaryShape(const OpSpec& spec);

}  // namespace ckplan
