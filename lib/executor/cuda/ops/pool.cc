#include "lib/executor/cuda/ops/pool.h"

#include "lib/executor/cuda/families.h"

namespace ckplan::cuda {

std::span<const OpRow> PoolOps() {
  static constexpr OpRow kRows[] = {
      {"AveragePool", PrepareAveragePool},
      {"GlobalAveragePool", PrepareAveragePool},
      {"GlobalMaxPool", PrepareMaxPool},
      {"MaxPool", PrepareMaxPool},
  };
  return kRows;
}

}  // namespace ckplan::cuda
