// MaxPool, AveragePool and their global forms. All are seen as pools of three spatial axes.
#include <algorithm>
#include <array>
#include <limits>

#include "lib/cpu/dnn_families.h"
#include "lib/cpu/parallel.h"
#include "lib/cpu/window.h"

namespace ckplan::cpu {

namespace {

struct Axis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, begin = 0, end = 0;

  // Positions [first, last) of the kernel that fall on the input, at this output position.
  int64_t origin(int64_t o) const { return o * stride - begin; }
  int64_t first(int64_t o) const {
    return origin(o) >= 0 ? 0 : (-origin(o) + dilation - 1) / dilation;
  }
  int64_t last(int64_t o) const {
    const int64_t room = in - origin(o);
    return room <= 0 ? 0 : std::min(kernel, (room + dilation - 1) / dilation);
  }
  // Positions of the kernel that fall on the input or its padding: a window that ceil_mode adds may
  // reach beyond.
  int64_t padded(int64_t o) const {
    const int64_t room = in + end - origin(o);
    return std::min(kernel, (room + dilation - 1) / dilation);
  }
};

struct PoolShape {
  int64_t planes = 1;  // Samples times channels.
  int64_t channels = 1;
  std::array<Axis, 3> axes;

  int64_t in() const { return axes[0].in * axes[1].in * axes[2].in; }
  int64_t out() const { return axes[0].out * axes[1].out * axes[2].out; }
  int64_t grain() const {
    const int64_t window = axes[0].kernel * axes[1].kernel * axes[2].kernel;
    return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, out() * window));
  }
};

PoolShape ShapeOf(const OpSpec& spec, bool is_global) {
  const Operand& x = spec.input(0);
  PoolShape shape;
  shape.planes = x.dims[0] * x.dims[1];
  if (is_global) {
    shape.axes[2].in = shape.axes[2].kernel = x.elements() / std::max<int64_t>(1, shape.planes);
    return shape;
  }
  const Window window = ReadWindow(spec, x, spec.output(0), {});
  const size_t skipped = 3 - window.rank();
  for (size_t i = 0; i < window.rank(); ++i) {
    shape.axes[i + skipped] = {window.in[i],      window.out[i],       window.kernel[i],
                               window.strides[i], window.dilations[i], window.begin[i],
                               window.end[i]};
  }
  return shape;
}

// Calls body(o, window) for every output position of a plane, in order. window(visit) calls
// visit(i) for each input position of the window, in order.
template <typename Body>
void ForEachWindow(const PoolShape& shape, const Body& body) {
  const auto& [d, h, w] = shape.axes;
  int64_t o = 0;
  for (int64_t z = 0; z < d.out; ++z) {
    for (int64_t y = 0; y < h.out; ++y) {
      for (int64_t x = 0; x < w.out; ++x) {
        body(o++, std::array<int64_t, 3>{z, y, x});
      }
    }
  }
}

template <typename Visit>
void ForEachInput(const PoolShape& shape, const std::array<int64_t, 3>& at, const Visit& visit) {
  const auto& [d, h, w] = shape.axes;
  const int64_t first = w.first(at[2]);
  const int64_t last = w.last(at[2]);
  for (int64_t i = d.first(at[0]); i < d.last(at[0]); ++i) {
    const int64_t z = d.origin(at[0]) + i * d.dilation;
    for (int64_t j = h.first(at[1]); j < h.last(at[1]); ++j) {
      const int64_t y = h.origin(at[1]) + j * h.dilation;
      const int64_t row = (z * h.in + y) * w.in + w.origin(at[2]);
      for (int64_t k = first; k < last; ++k) visit(row + k * w.dilation);
    }
  }
}

// Of the statistic, or of the operator's second output: where in its plane each maximum was.
class MaxPoolOp final : public PreparedOp {
 public:
  MaxPoolOp(const OpSpec& spec, const PoolShape& shape)
      : shape_(shape), saves_output_(spec.output(1).is_present) {
    const int64_t order = spec.Int("storage_order", 0);
    is_column_major_ = order == 1;
  }

  void Forward(const ForwardCall& call) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    auto* y = static_cast<float*>(call.outputs[0]);
    auto* saved = static_cast<int32_t*>(call.statistic);
    auto* output = call.outputs.size() > 1 ? static_cast<int64_t*>(call.outputs[1]) : nullptr;
    ParallelFor(shape_.planes, shape_.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        ForEachWindow(shape_, [&](int64_t o, const std::array<int64_t, 3>& at) {
          const int64_t index = FindMaximum(x + p * shape_.in(), at);
          const int64_t to = p * shape_.out() + o;
          if (y != nullptr) y[to] = x[p * shape_.in() + index];
          if (saved != nullptr) saved[to] = static_cast<int32_t>(index);
          if (output != nullptr) output[to] = p * shape_.in() + ToStorage(index);
        });
      }
    });
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const auto* dy = static_cast<const float*>(call.output_gradients[0]);
    const auto* saved = static_cast<const int32_t*>(call.statistic);
    const auto* output = saves_output_ ? static_cast<const int64_t*>(call.outputs[1]) : nullptr;
    auto* dx = static_cast<float*>(gradient);
    ParallelFor(shape_.planes, shape_.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        float* plane = dx + p * shape_.in();
        std::fill(plane, plane + shape_.in(), 0.0F);
        for (int64_t o = p * shape_.out(); o < (p + 1) * shape_.out(); ++o) {
          const int64_t index =
              output == nullptr ? saved[o] : FromStorage(output[o] - p * shape_.in());
          plane[index] += dy[o];
        }
      }
    });
  }

 private:
  // The first of the greatest; a NaN is greater than all.
  int64_t FindMaximum(const float* plane, const std::array<int64_t, 3>& at) const {
    int64_t best = -1;
    float value = -std::numeric_limits<float>::infinity();
    ForEachInput(shape_, at, [&](int64_t i) {
      if (best >= 0 && !(plane[i] > value) && plane[i] == plane[i]) return;
      if (best >= 0 && value != value) return;
      best = i;
      value = plane[i];
    });
    return std::max<int64_t>(best, 0);  // A window on padding alone, which no valid pool has.
  }

  // Index of the same element where the last axis is counted in the outermost place.
  int64_t ToStorage(int64_t index) const {
    if (!is_column_major_) return index;
    const auto& [d, h, w] = shape_.axes;
    const int64_t x = index % w.in;
    const int64_t y = index / w.in % h.in;
    return (x * h.in + y) * d.in + index / (w.in * h.in);
  }
  int64_t FromStorage(int64_t index) const {
    if (!is_column_major_) return index;
    const auto& [d, h, w] = shape_.axes;
    const int64_t z = index % d.in;
    const int64_t y = index / d.in % h.in;
    return (z * h.in + y) * w.in + index / (d.in * h.in);
  }

  PoolShape shape_;
  bool saves_output_;
  bool is_column_major_ = false;
};

class AveragePoolOp final : public PreparedOp {
 public:
  AveragePoolOp(const OpSpec& spec, const PoolShape& shape)
      : shape_(shape), counts_padding_(spec.Int("count_include_pad", 0) != 0) {}

  void Forward(const ForwardCall& call) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    auto* y = static_cast<float*>(call.outputs[0]);
    if (y == nullptr) return;
    ParallelFor(shape_.planes, shape_.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const float* plane = x + p * shape_.in();
        ForEachWindow(shape_, [&](int64_t o, const std::array<int64_t, 3>& at) {
          double sum = 0;
          ForEachInput(shape_, at, [&](int64_t i) { sum += static_cast<double>(plane[i]); });
          y[p * shape_.out() + o] = static_cast<float>(sum / Divisor(at));
        });
      }
    });
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const auto* dy = static_cast<const float*>(call.output_gradients[0]);
    auto* dx = static_cast<float*>(gradient);
    ParallelFor(shape_.planes, shape_.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        float* plane = dx + p * shape_.in();
        std::fill(plane, plane + shape_.in(), 0.0F);
        ForEachWindow(shape_, [&](int64_t o, const std::array<int64_t, 3>& at) {
          const auto share =
              static_cast<float>(static_cast<double>(dy[p * shape_.out() + o]) / Divisor(at));
          ForEachInput(shape_, at, [&](int64_t i) { plane[i] += share; });
        });
      }
    });
  }

 private:
  double Divisor(const std::array<int64_t, 3>& at) const {
    int64_t count = 1;
    for (size_t i = 0; i < 3; ++i) {
      const Axis& axis = shape_.axes[i];
      count *= counts_padding_ ? axis.padded(at[i]) : axis.last(at[i]) - axis.first(at[i]);
    }
    return static_cast<double>(std::max<int64_t>(count, 1));
  }

  PoolShape shape_;
  bool counts_padding_;
};

template <typename Op, bool kIsGlobal>
Result<std::unique_ptr<PreparedOp>> Prepare(const OpSpec& spec) {
  const Operand& x = spec.input(0);
  if (!kIsGlobal && (x.dims.size() < 3 || x.dims.size() > 5)) {
    return Unsupported(spec, "only 1 to 3 spatial axes are");
  }
  const PoolShape shape = ShapeOf(spec, kIsGlobal);
  if (shape.in() > std::numeric_limits<int32_t>::max()) {
    return Unsupported(spec, "an image of it has more than 2^31 elements");
  }
  return Prepared<Op>(spec, shape);
}

constexpr OpRow kOps[] = {
    {"AveragePool", Prepare<AveragePoolOp, false>, true, "1 to 3 spatial axes"},
    {"GlobalAveragePool", Prepare<AveragePoolOp, true>},
    {"GlobalMaxPool", Prepare<MaxPoolOp, true>},
    {"MaxPool", Prepare<MaxPoolOp, false>, true, "1 to 3 spatial axes"},
};

}  // namespace

std::span<const OpRow> PoolOps() { return kOps; }

}  // namespace ckplan::cpu
