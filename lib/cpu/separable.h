// Linear maps that act on each axis by itself: resizing, padding, cropping. An element of the
// output is a weighted sum of few elements of the input:
//
//   y[i, j] = Σ_p Σ_q rows[i].weight[p] columns[j].weight[q] x[rows[i].index[p],
//   columns[j].index[q]]
//
// The gradient is the map with each axis transposed: a sum again, in a fixed order, and no element
// of it is written twice.
#pragma once

#include "lib/backend/backend.h"
#include "lib/cpu/layout.h"

namespace ckplan::cpu {

// What one axis of the output is made of: the taps of index i are [begin[i], begin[i + 1]).
struct AxisTaps {
  int64_t input_size = 0;
  std::vector<int64_t> begin{0};
  std::vector<int64_t> index;
  std::vector<float> weight;

  int64_t output_size() const { return static_cast<int64_t>(begin.size()) - 1; }
  // Taps are added to the last index of the output until it is closed.
  void Add(int64_t input_index, double tap_weight);
  void Close() { begin.push_back(static_cast<int64_t>(index.size())); }
  bool IsIdentity() const;
  AxisTaps Transposed() const;  // From output to input.
};

AxisTaps IdentityTaps(int64_t size);

class SeparableMap {
 public:
  SeparableMap() = default;
  // One for each axis; scalars have none. Neighbouring axes that nothing happens to are merged.
  explicit SeparableMap(const std::vector<AxisTaps>& axes);

  SeparableMap Transposed() const;
  // `fill` where there is no tap.
  void Run(const float* from, float* to, float fill = 0) const;
  // Of any type, by size of an element: at most one tap for each element, its weight taken as
  // 1; `fill` (a single element) where there is none.
  void Select(const void* from, void* to, int64_t element_bytes, const void* fill) const;

 private:
  // Calls body(offset of a row of the input, weight) for all taps of a row of the output.
  template <typename Body>
  void ForRowTaps(int64_t row, const Body& body) const;
  void AddRow(const float* from, float weight, float* to) const;
  template <typename T>
  void SelectRow(const T* from, T* to) const;

  std::vector<AxisTaps> outer_;  // All axes but the last.
  Dims input_strides_;           // Of those.
  AxisTaps inner_;
  bool is_inner_identity_ = true;
  bool has_inner_holes_ = false;  // Indices without taps.
  int64_t rows_ = 1;              // Of the output.
};

}  // namespace ckplan::cpu
