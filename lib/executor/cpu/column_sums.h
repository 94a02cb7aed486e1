// Sums of the columns of a row-major matrix of terms, for gradients of biases and scales.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/executor/cpu/parallel.h"

namespace ckplan::cpu {

// Computes result[c] = the sum over rows of term(row, c). Small groups of rows are summed in float
// and the sums of the groups in double, so that long columns keep their precision.
template <typename Term>
void SumColumns(int64_t rows, int64_t columns, float* result, const Term& term) {
  constexpr int64_t kColumns = 64;
  constexpr int64_t kRows = 32;
  const int64_t blocks = (columns + kColumns - 1) / kColumns;
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, rows * kColumns));
  ParallelFor(blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t first = begin * kColumns; first < std::min(end * kColumns, columns);
         first += kColumns) {
      const int64_t count = std::min(kColumns, columns - first);
      double sums[kColumns] = {};
      for (int64_t top = 0; top < rows; top += kRows) {
        float group[kColumns] = {};
        for (int64_t row = top; row < std::min(rows, top + kRows); ++row) {
          for (int64_t c = 0; c < count; ++c) group[c] += term(row, first + c);
        }
        for (int64_t c = 0; c < count; ++c) sums[c] += static_cast<double>(group[c]);
      }
      for (int64_t c = 0; c < count; ++c) result[first + c] = static_cast<float>(sums[c]);
    }
  });
}

}  // namespace ckplan::cpu
