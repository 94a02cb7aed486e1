// Convolutions.
#include "lib/executor/reference/families.h"
#include "lib/executor/reference/sliding.h"

namespace ckplan::reference {

namespace {

// Returns the number of elements of one channel of one sample.
int64_t Plane(const Tensor& x) { return x.size() / (x.dim(0) * x.dim(1)); }

void Conv(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  const Tensor& w = inputs[1];
  Tensor& y = outputs[0];
  const Sliding s = ReadSliding(spec, x.dims, y.dims, {w.dims.begin() + 2, w.dims.end()}, false);
  const int64_t per_group = y.dim(1) / spec.Int("group", 1);
  ForEach(y.dims, [&](const Index& index, int64_t o) {
    const bool has_bias = inputs.size() > 2 && inputs[2].is_present;
    y[o] = has_bias ? inputs[2][index[1]] : 0;
    const int64_t first = index[1] / per_group * w.dim(1);
    VisitWindow(s, Spatial(index), [&](const Index& at, const Index& k, bool is_inside) {
      if (!is_inside) return;
      const int64_t x_at = Offset(x, Join(index[0], first, at));
      const int64_t w_at = Offset(w, Join(index[1], 0, k));
      for (int64_t c = 0; c < w.dim(1); ++c) {
        y[o] += x[x_at + c * Plane(x)] * w[w_at + c * Plane(w)];
      }
    });
  });
}

// The reverse of Conv: every element of x adds to its window in y.
void ConvTranspose(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  const Tensor& w = inputs[1];
  Tensor& y = outputs[0];
  const Sliding s = ReadSliding(spec, y.dims, x.dims, {w.dims.begin() + 2, w.dims.end()}, true);
  const int64_t per_group = x.dim(1) / spec.Int("group", 1);
  ForEach(y.dims, [&](const Index& index, int64_t o) {
    const bool has_bias = inputs.size() > 2 && inputs[2].is_present;
    y[o] = has_bias ? inputs[2][index[1]] : 0;
  });
  ForEach(x.dims, [&](const Index& index, int64_t i) {
    const int64_t first = index[1] / per_group * w.dim(1);
    ForEach(s.kernel, [&](const Index& k, int64_t) {
      Index at(k.size());
      for (size_t a = 0; a < k.size(); ++a) {
        at[a] = index[a + 2] * s.strides[a] - s.begins[a] + k[a] * s.dilations[a];
        if (at[a] < 0 || at[a] >= s.in[a]) return;
      }
      const int64_t y_at = Offset(y, Join(index[0], first, at));
      const int64_t w_at = Offset(w, Join(index[1], 0, k));
      for (int64_t c = 0; c < w.dim(1); ++c) {
        y[y_at + c * Plane(y)] += x[i] * w[w_at + c * Plane(w)];
      }
    });
  });
}

constexpr FunctionRow kConvReferences[] = {
    {"Conv", Conv},
    {"ConvTranspose", ConvTranspose},
};

constexpr CaseRow kConvCases[] = {
    {"Conv", "f2x3x8x7 f4x3x3x3 -> f2x4x6x5"},
    {"Conv", "f2x3x8x7 f4x3x3x3 f4 -> f2x4x8x7", "pads=[1,1,1,1] kernel_shape=[3,3]"},
    {"Conv", "f1x2x9x9 f3x2x3x3 f3 -> f1x3x5x5", "pads=[1,1,1,1] strides=[2,2]"},
    {"Conv", "f1x2x9x8 f3x2x3x2 -> f1x3x5x7", "pads=[0,1,2,0] strides=[2,1] dilations=[1,2]"},
    {"Conv", "f2x4x5x5 f6x2x3x3 f6 -> f2x6x5x5", "group=2 pads=[1,1,1,1]"},
    {"Conv", "f2x5x6x6 f5x1x3x3 -> f2x5x6x6", "group=5 pads=[1,1,1,1]"},
    {"Conv", "f2x16x6x6 f16x1x3x3 -> f2x16x3x3", "group=16 pads=[1,1,1,1] strides=[2,2]"},
    {"Conv", "f1x4x6x6 f8x1x3x3 -> f1x8x6x6", "group=4 pads=[1,1,1,1]"},
    {"Conv", "f3x5x4x4 f6x5x1x1 f6 -> f3x6x4x4"},
    {"Conv", "f3x5x12x12 f4x5x1x1 f4 -> f3x4x12x12"},  // Large enough for a matrix product.
    {"Conv", "f2x5x6x6 f4x5x1x1 -> f2x4x3x3", "strides=[2,2]"},
    {"Conv", "f2x3x7x8 f4x3x3x3 -> f2x4x4x4", "auto_pad='SAME_UPPER' strides=[2,2]"},
    {"Conv", "f2x3x8x8 f4x3x3x3 -> f2x4x4x4", "auto_pad='SAME_LOWER' strides=[2,2]"},
    {"Conv", "f2x3x8x8 f4x3x3x3 -> f2x4x6x6", "auto_pad='VALID'"},
    {"Conv", "f2x3x11 f4x3x3 f4 -> f2x4x6", "pads=[1,1] strides=[2]"},
    {"Conv", "f1x2x4x5x6 f3x2x2x3x2 f3 -> f1x3x3x5x5", "pads=[0,1,0,0,1,0]"},
    {"Conv", "f1x3x3x4x4 f3x1x2x2x2 -> f1x3x2x3x3", "group=3"},
    {"Conv", "f2x8x9x20 f8x4x3x3 -> f2x8x9x20", "group=2 pads=[1,1,1,1]"},
    {"Conv", "f2x6x9x10 f6x1x5x5 f6 -> f2x6x5x5", "group=6 pads=[2,2,2,2] strides=[2,2]"},
    {"Conv", "f2x6x9x10 f6x1x7x7 -> f2x6x9x10", "group=6 pads=[3,3,3,3]"},
    {"Conv", "f2x4x9x10 f8x2x2x3 -> f2x8x8x8", "group=2 dilations=[2,1] pads=[1,0,0,0]"},
    {"Conv", "f2x4x5x6x7 f4x2x2x3x3 -> f2x4x4x4x3", "group=2 strides=[1,1,2]"},
    {"Conv", "f3x5x1x1 f6x5x1x1! f6! -> f3x6x1x1"},
    {"Conv", "f2x3x8x7~ f4x3x3x3! -> f2x4x6x5"},
    {"ConvTranspose", "f2x3x4x5 f3x4x3x3 f4 -> f2x4x6x7"},
    {"ConvTranspose", "f2x3x4x5 f3x4x3x3 -> f2x4x7x9", "strides=[2,2] pads=[1,1,1,1]"},
    {"ConvTranspose", "f2x3x4x5 f3x4x3x3 -> f2x4x8x10",
     "strides=[2,2] pads=[1,1,1,1] output_padding=[1,1]"},
    {"ConvTranspose", "f1x4x4x4 f4x3x2x2 f6 -> f1x6x8x8", "strides=[2,2] group=2"},
    {"ConvTranspose", "f1x3x4x4 f3x1x3x3 -> f1x3x8x6", "group=3 dilations=[2,1] pads=[0,0,0,0]"},
    {"ConvTranspose", "f1x3x4x4 f3x2x3x3 -> f1x2x8x8", "strides=[2,2] auto_pad='SAME_UPPER'"},
    {"ConvTranspose", "f1x3x4x4 f3x2x3x3 -> f1x2x8x8", "strides=[2,2] auto_pad='SAME_LOWER'"},
    {"ConvTranspose", "f1x3x4x4 f3x2x3x3 -> f1x2x8x8", "strides=[2,2] output_shape=[8,8]"},
    {"ConvTranspose", "f1x3x5 f3x2x4 -> f1x2x12", "strides=[2]"},
    {"ConvTranspose", "f1x2x2x3x2 f2x3x2x2x2 -> f1x3x3x4x3"},
    {"ConvTranspose", "f2x3x12x12 f3x4x1x1 f4 -> f2x4x12x12"},
};

}  // namespace

std::span<const FunctionRow> ConvReferences() { return kConvReferences; }
std::span<const CaseRow> ConvCases() { return kConvCases; }

}  // namespace ckplan::reference
