// Linear maps that act on each axis by itself, see lib/backend/taps.h.
#pragma once

#include "lib/backend/backend.h"
#include "lib/cpu/layout.h"
#include "lib/ops/taps.h"

namespace ckplan::cpu {

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
