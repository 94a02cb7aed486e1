// Convolutions.
#include <algorithm>
#include <limits>

#include "lib/executor/testing/op_case.h"
#include "lib/executor/testing/tensor.h"

namespace ckplan::reference {

namespace {

// Sliding windows of convolutions and pools.

std::vector<int64_t> IntsOr(const OpSpec& spec, std::string_view name, size_t count,
                            int64_t otherwise) {
  std::vector<int64_t> ints = spec.Ints(name);
  if (ints.empty()) ints.assign(count, otherwise);
  return ints;
}

// Sizes along the spatial axes only. `in` belongs to the tensor that the window slides over.
struct Sliding {
  std::vector<int64_t> in, out, kernel, strides, dilations, begins, ends;
};

Sliding ReadSliding(const OpSpec& spec, const std::vector<int64_t>& in,
                    const std::vector<int64_t>& out, std::vector<int64_t> kernel,
                    bool is_transposed) {
  Sliding s;
  s.in.assign(in.begin() + 2, in.end());
  s.out.assign(out.begin() + 2, out.end());
  const size_t rank = s.in.size();
  s.kernel = kernel.empty() ? spec.Ints("kernel_shape") : std::move(kernel);
  s.strides = IntsOr(spec, "strides", rank, 1);
  s.dilations = IntsOr(spec, "dilations", rank, 1);
  const std::vector<int64_t> pads = IntsOr(spec, "pads", 2 * rank, 0);
  const std::vector<int64_t> extra = IntsOr(spec, "output_padding", rank, 0);
  const std::string rule = spec.String("auto_pad", "NOTSET");
  for (size_t i = 0; i < rank; ++i) {
    int64_t begin = pads[i];
    int64_t end = pads[i + rank];
    if (rule[0] == 'S' || spec.Has("output_shape")) {
      const int64_t total =
          std::max<int64_t>(0, (s.out[i] - 1) * s.strides[i] + extra[i] +
                                   (s.kernel[i] - 1) * s.dilations[i] + 1 - s.in[i]);
      const bool is_small_first = is_transposed ? rule == "SAME_UPPER" : rule != "SAME_LOWER";
      begin = is_small_first ? total / 2 : total - total / 2;
      end = total - begin;
    }
    s.begins.push_back(begin);
    s.ends.push_back(end);
  }
  return s;
}

// For each window position at `out`, calls visit(spatial index in x, kernel index, whether it lies
// on x rather than in its padding). Skips positions beyond the padding.
template <typename Visit>
void VisitWindow(const Sliding& s, const Index& out, const Visit& visit) {
  ForEach(s.kernel, [&](const Index& k, int64_t) {
    Index at(k.size());
    bool is_inside = true;
    for (size_t i = 0; i < k.size(); ++i) {
      at[i] = out[i] * s.strides[i] - s.begins[i] + k[i] * s.dilations[i];
      if (at[i] >= s.in[i] + s.ends[i]) return;
      is_inside = is_inside && at[i] >= 0 && at[i] < s.in[i];
    }
    visit(static_cast<const Index&>(at), k, is_inside);
  });
}

Index Join(int64_t a, int64_t b, const Index& rest) {
  Index index = {a, b};
  index.insert(index.end(), rest.begin(), rest.end());
  return index;
}

Index Spatial(const Index& index) { return {index.begin() + 2, index.end()}; }

// Returns the elements per channel of one sample.
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

// Pools.

namespace {

void AveragePool(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  const bool counts_padding = spec.Int("count_include_pad", 0) != 0;
  const Sliding s = ReadSliding(spec, x.dims, outputs[0].dims, {}, false);
  ForEach(outputs[0].dims, [&](const Index& index, int64_t o) {
    double sum = 0;
    double count = 0;
    VisitWindow(s, Spatial(index), [&](const Index& at, const Index&, bool is_inside) {
      if (is_inside) sum += x[Offset(x, Join(index[0], index[1], at))];
      if (is_inside || counts_padding) ++count;
    });
    outputs[0][o] = sum / count;
  });
}

void MaxPool(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  const Sliding s = ReadSliding(spec, x.dims, outputs[0].dims, {}, false);
  ForEach(outputs[0].dims, [&](const Index& index, int64_t o) {
    double best = -std::numeric_limits<double>::infinity();
    Index where;
    VisitWindow(s, Spatial(index), [&](const Index& at, const Index&, bool is_inside) {
      if (!is_inside || x[Offset(x, Join(index[0], index[1], at))] <= best) return;
      where = Join(index[0], index[1], at);
      best = x[Offset(x, where)];
    });
    outputs[0][o] = best;
    if (outputs.size() < 2) return;
    int64_t position = Offset(x, where);
    if (spec.Int("storage_order", 0) == 1) {  // The first spatial axis varies fastest.
      position = 0;
      for (size_t axis = where.size(); axis-- > 2;)
        position = position * x.dims[axis] + where[axis];
      const int64_t plane = x.size() / (x.dim(0) * x.dim(1));
      position += (where[0] * x.dim(1) + where[1]) * plane;
    }
    outputs[1][o] = static_cast<double>(position);
  });
}

// Returns the spec of a pool whose window is the whole image.
OpSpec WholeImage(const OpSpec& spec) {
  OpSpec whole = spec;
  const std::vector<int64_t>& dims = spec.inputs[0].dims;
  whole.attributes["kernel_shape"] = std::vector<int64_t>(dims.begin() + 2, dims.end());
  return whole;
}

void GlobalAveragePool(const OpSpec& spec, std::span<const Tensor> inputs,
                       std::span<Tensor> outputs) {
  AveragePool(WholeImage(spec), inputs, outputs);
}

void GlobalMaxPool(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  MaxPool(WholeImage(spec), inputs, outputs);
}

constexpr FunctionRow kPoolReferences[] = {
    {"AveragePool", AveragePool},
    {"GlobalAveragePool", GlobalAveragePool},
    {"GlobalMaxPool", GlobalMaxPool},
    {"MaxPool", MaxPool},
};

constexpr CaseRow kPoolCases[] = {
    {"MaxPool", "f2x3x7x8 -> f2x3x5x6", "kernel_shape=[3,3]"},
    {"MaxPool", "f2x3x7x8 -> f2x3x4x4", "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]"},
    {"MaxPool", "f2x3x7x8 -> f2x3x4x4", "kernel_shape=[2,2] strides=[2,2] ceil_mode=1"},
    {"MaxPool", "f2x3x3x4 -> f2x3x1x1", "kernel_shape=[7,7] strides=[7,7] ceil_mode=1"},
    {"MaxPool", "f1x2x9x9 -> f1x2x5x3", "kernel_shape=[3,3] dilations=[2,3]"},
    {"MaxPool", "f1x2x9x9 -> f1x2x5x5", "kernel_shape=[2,2] strides=[2,2] auto_pad='SAME_LOWER'"},
    {"MaxPool", "f2x3x9 -> f2x3x4", "kernel_shape=[3] strides=[2]"},
    {"MaxPool", "f1x2x4x5x4 -> f1x2x3x4x3", "kernel_shape=[2,2,2]"},
    {"MaxPool", "f2x3x7x8 -> f2x3x5x6 i2x3x5x6", "kernel_shape=[3,3]"},
    {"MaxPool", "f2x3x7x8 -> f2x3x5x6 i2x3x5x6", "kernel_shape=[3,3] storage_order=1"},
    {"MaxPool", "f2x3x4x5 -> f2x3x1x1 i2x3x1x1", "kernel_shape=[4,5] storage_order=1"},
    {"MaxPool", "f2x3x5x6 -> f2x3x1x1", "kernel_shape=[4,6] strides=[2,2]"},
    {"AveragePool", "f2x3x7x8 -> f2x3x5x6", "kernel_shape=[3,3]"},
    {"AveragePool", "f2x3x7x8 -> f2x3x4x4", "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]"},
    {"AveragePool", "f2x3x7x8 -> f2x3x4x4",
     "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1] count_include_pad=1"},
    {"AveragePool", "f2x3x8x8 -> f2x3x5x5",
     "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1] count_include_pad=1 ceil_mode=1"},
    {"AveragePool", "f2x3x8x8 -> f2x3x4x4", "kernel_shape=[3,3] strides=[2,2] ceil_mode=1"},
    {"AveragePool", "f2x3x3x4 -> f2x3x1x1", "kernel_shape=[7,7] strides=[7,7] ceil_mode=1"},
    {"AveragePool", "f2x3x2x2 -> f2x3x1x1",
     "kernel_shape=[3,3] strides=[3,3] pads=[1,1,1,1] ceil_mode=1"},
    {"AveragePool", "f1x2x9x9 -> f1x2x9x9", "kernel_shape=[4,4] auto_pad='SAME_UPPER'"},
    {"AveragePool", "f1x2x9x9 -> f1x2x5x3", "kernel_shape=[3,3] dilations=[2,3]"},
    {"AveragePool", "f2x3x9 -> f2x3x4", "kernel_shape=[3] strides=[2]"},
    {"AveragePool", "f1x2x4x5x4 -> f1x2x3x4x3", "kernel_shape=[2,2,2]"},
    {"AveragePool", "f2x3x4x5 -> f2x3x1x1",
     "kernel_shape=[6,6] pads=[1,0,1,1] count_include_pad=1"},
    {"AveragePool", "f2x3x5x6 -> f2x3x1x1", "kernel_shape=[5,5] dilations=[1,1] strides=[2,2]"},
    {"MaxPool", "f1x1x3x300 -> f1x1x2x150", "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]"},
    {"AveragePool", "f1x1x3x300 -> f1x1x2x150", "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]"},
    {"GlobalAveragePool", "f2x3x5x4 -> f2x3x1x1"},
    {"GlobalAveragePool", "f2x3x7 -> f2x3x1"},
    {"GlobalMaxPool", "f2x3x5x4 -> f2x3x1x1"},
    {"GlobalMaxPool", "f2x3x2x3x4 -> f2x3x1x1x1"},
};

}  // namespace

std::span<const FunctionRow> PoolReferences() { return kPoolReferences; }
std::span<const CaseRow> PoolCases() { return kPoolCases; }

// Col2Im: adds every element of every block at its place in the image.

namespace {

std::vector<int64_t> Integers(const Tensor& tensor) {
  return {tensor.values.begin(), tensor.values.end()};
}

void Col2Im(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const std::vector<int64_t> image = Integers(inputs[1]);
  const std::vector<int64_t> block = Integers(inputs[2]);
  const size_t rank = image.size();
  const std::vector<int64_t> strides = IntsOr(spec, "strides", rank, 1);
  const std::vector<int64_t> dilations = IntsOr(spec, "dilations", rank, 1);
  const std::vector<int64_t> pads = IntsOr(spec, "pads", 2 * rank, 0);
  // The input's axes are sample, channel, the block's axes, and the axes of block positions.
  std::vector<int64_t> axes = {outputs[0].dim(0), outputs[0].dim(1)};
  axes.insert(axes.end(), block.begin(), block.end());
  for (size_t k = 0; k < rank; ++k) {
    const int64_t extent = (block[k] - 1) * dilations[k] + 1;
    axes.push_back((image[k] + pads[k] + pads[k + rank] - extent) / strides[k] + 1);
  }
  ForEach(axes, [&](const Index& index, int64_t i) {
    Index to = {index[0], index[1]};
    bool is_inside = true;
    for (size_t k = 0; k < rank; ++k) {
      to.push_back(index[2 + rank + k] * strides[k] - pads[k] + index[2 + k] * dilations[k]);
      is_inside = is_inside && to.back() >= 0 && to.back() < image[k];
    }
    if (is_inside) outputs[0][Offset(outputs[0], to)] += inputs[0][i];
  });
}

constexpr FunctionRow kCol2ImReferences[] = {{"Col2Im", Col2Im}};

constexpr CaseRow kCol2ImCases[] = {
    {"Col2Im", "f1x5x5 i2=[5,5] i2=[1,5] -> f1x1x5x5"},
    {"Col2Im", "f1x9x4 i2=[5,5] i2=[3,3] -> f1x1x5x5", "strides=[2,2]"},
    {"Col2Im", "f1x5x15 i2=[5,5] i2=[1,5] -> f1x1x5x5", "pads=[0,1,0,1]"},
    {"Col2Im", "f1x4x5 i2=[6,6] i2=[2,2] -> f1x1x6x6", "dilations=[1,5]"},
    {"Col2Im", "f2x12x28 i2=[7,6] i2=[3,2] -> f2x2x7x6",
     "strides=[2,1] dilations=[1,2] pads=[1,0,2,3]"},
    // Images with one axis and with three axes.
    {"Col2Im", "f2x6x7 i1=[9] i1=[3] -> f2x2x9"},
    {"Col2Im", "f1x10x12 i3=[3,4,5] i3=[1,1,5] -> f1x2x3x4x5"},
    {"Col2Im", "f2x24x12 i3=[4,5,3] i3=[2,3,2] -> f2x2x4x5x3",
     "strides=[2,1,1] dilations=[1,2,2] pads=[0,1,1,1,0,1]"},
    // Image elements that no block covers, and blocks entirely in the padding.
    {"Col2Im", "f2x4x3 i1=[10] i1=[2] -> f2x2x10", "strides=[4]"},
    {"Col2Im", "f1x2x11 i1=[2] i1=[2] -> f1x1x2", "pads=[5,5]"},
    {"Col2Im", "f1x2x3 i1=[1] i1=[2] -> f1x1x1", "pads=[4,4] strides=[3]"},
    {"Col2Im", "f2x12x3360 i2=[57,61] i2=[2,2] -> f2x3x57x61"},
    {"Col2Im", "f40x8x4 i2=[3,3] i2=[2,2] -> f40x2x3x3"},
};

}  // namespace

std::span<const FunctionRow> Col2ImReferences() { return kCol2ImReferences; }
std::span<const CaseRow> Col2ImCases() { return kCol2ImCases; }

}  // namespace ckplan::reference
