// Linear maps that are applied along each axis independently; see lib/problem/ops/pad_resize.h.
#pragma once

#include "lib/executor/backend/backend.h"
#include "lib/executor/cpu/layout.h"
#include "lib/problem/ops/pad_resize.h"

namespace ckplan::cpu {

class SeparableMap {
 public:
  SeparableMap() = default;
  // `axes` has one entry per axis; scalars have none. Neighbouring axes that stay unchanged are
  // merged.
  explicit SeparableMap(const std::vector<AxisTaps>& axes);

  SeparableMap Transposed() const;
  // `fill` is the output where there is no tap.
  void Run(const float* from, float* to, float fill = 0) const;
  // Selects elements of any type, given their size. Each output element has at most one tap, whose
  // weight is taken as 1; `fill` (a single element) is the output where there is no tap.
  void Select(const void* from, void* to, int64_t element_bytes, const void* fill) const;

 private:
  // Neighbouring output elements of a row that read neighbouring input elements, all with the same
  // weight.
  struct Stretch {
    int64_t to = 0, from = 0, length = 0;
    float weight = 1;
  };
  // At most two taps, which suffice for linear interpolation. A single tap gets a second one of
  // weight 0.
  struct TapPair {
    int64_t first = 0, second = 0;
    float first_weight = 0, second_weight = 0;
  };

  void FindStretches();
  void FindPairs();
  // Calls body(offset of a row of the input, weight) for all taps of an output row.
  template <typename Body>
  void ForRowTaps(int64_t row, const Body& body) const;
  void RunRow(int64_t row, const float* from, float* to, float fill) const;
  void AddRow(const float* from, float weight, float* to) const;
  void FillHoles(float* to, float fill) const;
  template <typename T>
  void SelectRow(const T* from, T* to) const;

  std::vector<AxisTaps> outer_;  // All axes but the last.
  Dims input_strides_;           // Strides of the outer axes.
  AxisTaps inner_;
  bool has_inner_holes_ = false;      // Some indices have no taps.
  std::vector<Stretch> stretches_;    // For one row; empty if they would be too short.
  std::vector<TapPair> inner_pairs_;  // For one row; empty if some element has more taps.
  int64_t rows_ = 1;                  // Rows of the output.
};

}  // namespace ckplan::cpu
