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
  // Neighbouring elements of a row that come from neighbours, all with one weight.
  struct Stretch {
    int64_t to = 0, from = 0, length = 0;
    float weight = 1;
  };
  // At most two taps: what linear interpolation has. One tap is two, the second of weight 0.
  struct TapPair {
    int64_t first = 0, second = 0;
    float first_weight = 0, second_weight = 0;
  };

  void FindStretches();
  void FindPairs();
  // Calls body(offset of a row of the input, weight) for all taps of a row of the output.
  template <typename Body>
  void ForRowTaps(int64_t row, const Body& body) const;
  void RunRow(int64_t row, const float* from, float* to, float fill) const;
  void AddRow(const float* from, float weight, float* to) const;
  void FillHoles(float* to, float fill) const;
  template <typename T>
  void SelectRow(const T* from, T* to) const;

  std::vector<AxisTaps> outer_;  // All axes but the last.
  Dims input_strides_;           // Of those.
  AxisTaps inner_;
  bool has_inner_holes_ = false;      // Indices without taps.
  std::vector<Stretch> stretches_;    // Of a row; empty where they would be too short.
  std::vector<TapPair> inner_pairs_;  // Of a row; empty where there are more.
  int64_t rows_ = 1;                  // Of the output.
};

}  // namespace ckplan::cpu
