// The shape of RotaryEmbedding: pairs of features turned by an angle that grows with the position.
#pragma once

#include <cstdint>

#include "lib/base/result.h"
#include "lib/ops/families.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

struct RotaryShape {
  int64_t batch = 1, heads = 1, length = 1, features = 1;
  int64_t rotated = 1;          // Features; the rest is copied. Even.
  bool is_head_major = false;   // [batch, heads, length, features]; else length before heads.
  bool is_interleaved = false;  // The two of a pair are neighbours; else half of `rotated` apart.
  int64_t cache_rows = 0;       // Positions that the caches have; 0: one for each token.

  int64_t rows() const { return batch * heads * length; }
};

Result<RotaryShape> ReadRotaryShape(const OpSpec& spec);

}  // namespace ckplan
