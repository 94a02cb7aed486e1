// Linear maps that act on each axis separately: resizing, padding, cropping. An element of the
// output is a weighted sum of a few elements of the input:
//
//   y[i, j] = Σ_p Σ_q rows[i].weight[p] columns[j].weight[q]
//             x[rows[i].index[p], columns[j].index[q]]
//
// The gradient is the map with each axis transposed. It is again a sum in a fixed order, and none
// of its elements is written twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ckplan {

// How each index of one axis of the output is computed: index i sums the taps from begin[i] up to,
// but not including, begin[i + 1].
struct AxisTaps {
  int64_t input_size = 0;
  std::vector<int64_t> begin{0};
  std::vector<int64_t> index;
  std::vector<float> weight;

  int64_t output_size() const { return static_cast<int64_t>(begin.size()) - 1; }
  // Adds a tap to the output's last index, which Close ends.
  void Add(int64_t input_index, double tap_weight);
  void Close() { begin.push_back(static_cast<int64_t>(index.size())); }
  bool IsIdentity() const;
  AxisTaps Transposed() const;  // The map from the output's axis to the input's.
};

AxisTaps IdentityTaps(int64_t size);
std::vector<AxisTaps> Transposed(const std::vector<AxisTaps>& axes);

// Merges neighbouring axes along which the map is the identity. At least one axis is left.
std::vector<AxisTaps> MergeIdentities(const std::vector<AxisTaps>& axes);

}  // namespace ckplan
