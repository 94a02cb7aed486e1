// Shapes of Pad and Resize, each axis of which is handled by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// Linear maps that act on each axis separately: resizing, padding, cropping. An element of the
// output is a weighted sum of a few elements of the input:
//
//   y[i, j] = Σ_p Σ_q rows[i].weight[p] columns[j].weight[q]
//             x[rows[i].index[p], columns[j].index[q]]
//
// The gradient is the map with each axis transposed. It is again a sum in a fixed order, and none
// of its elements is written twice.

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

// Pad in all its modes, and CenterCropPad, as taps. Each element of the output has one tap of
// weight 1, or no tap where it is filled with a constant.
struct PadShape {
  std::vector<AxisTaps> axes;
  // Elements without a tap are filled with input 2 if true, with `value` if false.
  bool has_value_input = false;
  float value = 0;
};

Result<PadShape> ReadPadShape(const OpSpec& spec);

// Resize and Upsample: finds, axis by axis, the elements of the input from which each element of
// the output is computed. They follow from attributes, shapes and known inputs. Names and formulas
// are ONNX's.
struct ResizeShape {
  std::vector<AxisTaps> axes;
  // Each element has at most one tap, of weight 1, so any type can be resized.
  bool selects = false;
  float fill = 0;  // The value of elements without a tap.
};

Result<ResizeShape> ReadResizeShape(const OpSpec& spec);

}  // namespace ckplan
