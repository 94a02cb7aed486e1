// Concat and Split: tensors that are joined along an axis.
//
// The joined tensor is `rows` rows of row_size elements, and each part owns a piece of every row:
//
//   Concat of [2,3] and [2,4] along axis 1:   row 0: aaabbbb   row 1: aaabbbb
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

struct JoinShape {
  int64_t rows = 1, row_size = 0;
  // For each part: where its piece of a row begins, and the number of elements in it. The piece of
  // an absent part has size 0.
  std::vector<int64_t> begin, size;
};

Result<JoinShape> ReadConcatShape(const OpSpec& spec);  // The parts are the inputs.
Result<JoinShape> ReadSplitShape(const OpSpec& spec);   // The parts are the outputs.

}  // namespace ckplan
