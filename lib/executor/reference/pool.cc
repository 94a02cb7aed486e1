// Pools.
#include <limits>

#include "lib/executor/reference/families.h"
#include "lib/executor/reference/sliding.h"

namespace ckplan::reference {

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

}  // namespace ckplan::reference
