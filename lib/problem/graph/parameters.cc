#include "lib/problem/graph/parameters.h"

#include <algorithm>
#include <tuple>

namespace ckplan {

Bytes SizeOf(const std::vector<OptimizedTensors>& tensors) {
  Bytes sum;
  for (const OptimizedTensors& row : tensors) {
    sum += row.count * Bytes(row.elements * row.element_bytes);
  }
  return sum;
}

std::vector<OptimizedTensors> Merged(std::vector<OptimizedTensors> tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return std::tie(a.element_bytes, a.elements) < std::tie(b.element_bytes, b.elements);
  });
  std::vector<OptimizedTensors> merged;
  for (const OptimizedTensors& next : tensors) {
    if (next.elements == 0 || next.count == 0) continue;
    const bool is_same = !merged.empty() && merged.back().elements == next.elements &&
                         merged.back().element_bytes == next.element_bytes;
    if (is_same) {
      merged.back().count += next.count;
    } else {
      merged.push_back(next);
    }
  }
  return merged;
}

}  // namespace ckplan
