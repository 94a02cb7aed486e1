#include "lib/planning/algorithms/hong/training_phases.h"

#include <algorithm>

namespace ckplan {

std::vector<Bytes> PredictTrainingPhases(const LayerList& list,
                                         const std::vector<size_t>& checkpoints) {
  const std::vector<Bytes>& d = list.sizes;
  const size_t last = d.size() - 1;  // N
  std::vector<Bytes> memory(2 * last + 2, d[0]);
  Bytes kept = d[0];  // The sum of checkpoints up to h.
  for (size_t c = 1; c < checkpoints.size(); ++c) {
    const size_t h = checkpoints[c - 1];
    const size_t i = checkpoints[c];
    const Bytes buffer = *std::max_element(d.begin() + static_cast<std::ptrdiff_t>(h),
                                           d.begin() + static_cast<std::ptrdiff_t>(i));
    Bytes segment;
    for (size_t k = h + 1; k <= i; ++k) {
      segment += d[k];
      memory[k] = kept + d[k];
      memory[2 * last + 1 - k] = kept + segment + buffer;
    }
    kept += d[i];
  }
  return memory;
}

}  // namespace ckplan
