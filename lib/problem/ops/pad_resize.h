// Shapes of Pad and Resize, which handle each axis separately.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// Resizing, padding and cropping are linear maps on each axis. An element of the output is a
// weighted sum of a few elements of the input, the taps:
//
//   y[i, j] = Σ_p Σ_q rows[i].weight[p] columns[j].weight[q]
//             x[rows[i].index[p], columns[j].index[q]]
//
// The gradient is the map with each axis transposed. So it is also a sum in a fixed order that
// writes each element once.

// The taps along one axis: index i of the output sums the taps in [begin[i], begin[i + 1]).
struct AxisTaps {
  int64_t input_size = 0;
  std::vector<int64_t> begin{0};
  std::vector<int64_t> index;
  std::vector<float> weight;

  int64_t output_size() const { return static_cast<int64_t>(begin.size()) - 1; }
  // Adds a tap to the current output index. Close moves on to the next index.
  void Add(int64_t input_index, double tap_weight);
  void Close() { begin.push_back(static_cast<int64_t>(index.size())); }
  bool IsIdentity() const;
  AxisTaps Transposed() const;  // The map from the output's axis to the input's.
};

AxisTaps IdentityTaps(int64_t size);
std::vector<AxisTaps> Transposed(const std::vector<AxisTaps>& axes);

// Merges adjacent axes with identity maps. At least one axis remains.
std::vector<AxisTaps> MergeIdentities(const std::vector<AxisTaps>& axes);

// Pad in all modes, and CenterCropPad. Each element of the output has one tap of weight 1, or no
// tap if it is filled with a constant.
struct PadShape {
  std::vector<AxisTaps> axes;
  // True: input 2 fills elements without a tap. False: `value` does.
  bool has_value_input = false;
  float value = 0;
};

Result<PadShape> ReadPadShape(const OpSpec& spec);

// Resize and Upsample. The taps follow from attributes, shapes and known inputs, with ONNX's names
// and formulas.
struct ResizeShape {
  std::vector<AxisTaps> axes;
  // Each element has at most one tap, with weight 1, so this works for all types.
  bool selects = false;
  float fill = 0;  // The value of elements without a tap.
};

Result<ResizeShape> ReadResizeShape(const OpSpec& spec);

}  // namespace ckplan
