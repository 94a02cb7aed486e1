// MaxPool, AveragePool and their global forms. All are treated as pools over three spatial axes.
#include <algorithm>
#include <limits>

#include "lib/executor/cpu/parallel.h"
#include "lib/executor/cpu/registry.h"
#include "lib/executor/cpu/vector_math.h"
#include "lib/problem/ops/sliding.h"

namespace ckplan::cpu {

namespace {

int64_t GrainOf(const PoolShape& shape) {
  const int64_t window = shape.axes[0].kernel * shape.axes[1].kernel * shape.axes[2].kernel;
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, shape.out() * window));
}

// Output columns computed together.
constexpr int64_t kStretchColumns = 128;

// A range of columns of one output row.
struct Stretch {
  int64_t z = 0, y = 0;         // Position of the row.
  int64_t first = 0, last = 0;  // Range of columns.
  int64_t offset = 0;           // Offset of column `first` in the output plane.
};

template <typename Body>
void ForEachStretch(const PoolShape& shape, const Body& body) {
  const auto& [d, h, w] = shape.axes;
  for (int64_t z = 0; z < d.out; ++z) {
    for (int64_t y = 0; y < h.out; ++y) {
      for (int64_t x = 0; x < w.out; x += kStretchColumns) {
        body(Stretch{z, y, x, std::min(w.out, x + kStretchColumns), (z * h.out + y) * w.out + x});
      }
    }
  }
}

// For every kernel position, in order, visits the stretch's columns for which that position is
// inside the input: visit(begin, end, from), where column `begin + i`, relative to the stretch's
// first column, reads element `from + i * stride` of the input plane.
template <typename Visit>
void ForEachTap(const PoolShape& shape, const Stretch& stretch, const Visit& visit) {
  const auto& [d, h, w] = shape.axes;
  for (int64_t i = d.first(stretch.z); i < d.last(stretch.z); ++i) {
    const int64_t z = d.origin(stretch.z) + i * d.dilation;
    for (int64_t j = h.first(stretch.y); j < h.last(stretch.y); ++j) {
      const int64_t y = h.origin(stretch.y) + j * h.dilation;
      for (int64_t k = 0; k < w.kernel; ++k) {
        const int64_t begin = std::max(stretch.first, w.first_out(k));
        const int64_t end = std::min(stretch.last, w.last_out(k));
        if (begin >= end) continue;
        const int64_t from = (z * h.in + y) * w.in + w.origin(begin) + k * w.dilation;
        visit(begin - stretch.first, end - stretch.first, from);
      }
    }
  }
}

// The statistic, or the operator's second output, holds each maximum's index within its plane.
class MaxPoolOp final : public PreparedOp {
 public:
  explicit MaxPoolOp(const PoolShape& shape) : shape_(shape) {}

  void Forward(const ForwardCall& call) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    auto* y = static_cast<float*>(call.outputs[0]);
    auto* saved = static_cast<int32_t*>(call.statistic);
    auto* output = call.outputs.size() > 1 ? static_cast<int64_t*>(call.outputs[1]) : nullptr;
    ParallelFor(shape_.planes, GrainOf(shape_), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        ForEachStretch(shape_, [&](const Stretch& stretch) {
          float highest[kStretchColumns];
          int32_t where[kStretchColumns];
          FindMaxima(x + p * shape_.in(), stretch, highest, where);
          const int64_t to = p * shape_.out() + stretch.offset;
          const int64_t count = stretch.last - stretch.first;
          if (y != nullptr) std::copy_n(highest, count, y + to);
          if (saved != nullptr) std::copy_n(where, count, saved + to);
          for (int64_t i = 0; output != nullptr && i < count; ++i) {
            output[to + i] = p * shape_.in() + ToStorage(where[i]);
          }
        });
      }
    });
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const auto* dy = static_cast<const float*>(call.output_gradients[0]);
    const auto* saved = static_cast<const int32_t*>(call.statistic);
    const auto* output =
        shape_.saves_output ? static_cast<const int64_t*>(call.outputs[1]) : nullptr;
    auto* dx = static_cast<float*>(gradient);
    ParallelFor(shape_.planes, GrainOf(shape_), [&](int64_t begin, int64_t end) {
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
  // Finds the first maximum of each window. NaN is greater than all numbers.
  void FindMaxima(const float* plane, const Stretch& stretch, float* highest,
                  int32_t* where) const {
    std::fill_n(highest, kStretchColumns, -std::numeric_limits<float>::infinity());
    std::fill_n(where, kStretchColumns, -1);
    const int64_t stride = shape_.axes[2].stride;
    ForEachTap(shape_, stretch, [&](int64_t begin, int64_t end, int64_t from) {
      const float* at = plane + from;
      auto index = static_cast<int32_t>(from);
      const auto step = static_cast<int32_t>(stride);
      for (int64_t i = begin; i < end; ++i, at += stride, index += step) {
        const float value = *at;
        const bool is_higher =
            (value > highest[i]) | (where[i] < 0) | ((value != value) & (highest[i] == highest[i]));
        highest[i] = is_higher ? value : highest[i];
        where[i] = is_higher ? index : where[i];
      }
    });
  }

  // Converts an index to column-major order if the operator stores indices in that order.
  int64_t ToStorage(int64_t index) const {
    if (!shape_.is_column_major) return index;
    const auto& [d, h, w] = shape_.axes;
    const int64_t x = index % w.in;
    const int64_t y = index / w.in % h.in;
    return (x * h.in + y) * d.in + index / (w.in * h.in);
  }
  int64_t FromStorage(int64_t index) const {
    if (!shape_.is_column_major) return index;
    const auto& [d, h, w] = shape_.axes;
    const int64_t z = index % d.in;
    const int64_t y = index / d.in % h.in;
    return (z * h.in + y) * w.in + index / (d.in * h.in);
  }

  PoolShape shape_;
};

class AveragePoolOp final : public PreparedOp {
 public:
  explicit AveragePoolOp(const PoolShape& shape) : shape_(shape) {
    for (int64_t x = 0; x < shape.axes[2].out; ++x) column_counts_.push_back(Count(2, x));
  }

  void Forward(const ForwardCall& call) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    auto* y = static_cast<float*>(call.outputs[0]);
    if (y == nullptr) return;
    const int64_t stride = shape_.axes[2].stride;
    ForPlanes([&](int64_t p) {
      const float* plane = x + p * shape_.in();
      ForEachStretch(shape_, [&](const Stretch& stretch) {
        double sums[kStretchColumns] = {};
        ForEachTap(shape_, stretch, [&](int64_t begin, int64_t end, int64_t from) {
          const float* at = plane + from;
          for (int64_t i = begin; i < end; ++i, at += stride) sums[i] += static_cast<double>(*at);
        });
        float* to = y + p * shape_.out() + stretch.offset;
        const double rows = Rows(stretch);
        const double* columns = column_counts_.data() + stretch.first;
        for (int64_t i = 0; i < stretch.last - stretch.first; ++i) {
          to[i] = static_cast<float>(sums[i] / (rows * columns[i]));
        }
      });
    });
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const auto* dy = static_cast<const float*>(call.output_gradients[0]);
    auto* dx = static_cast<float*>(gradient);
    const int64_t stride = shape_.axes[2].stride;
    ForPlanes([&](int64_t p) {
      float* plane = dx + p * shape_.in();
      std::fill(plane, plane + shape_.in(), 0.0F);
      ForEachStretch(shape_, [&](const Stretch& stretch) {
        const float* from = dy + p * shape_.out() + stretch.offset;
        float shares[kStretchColumns];
        const double rows = Rows(stretch);
        const double* columns = column_counts_.data() + stretch.first;
        for (int64_t i = 0; i < stretch.last - stretch.first; ++i) {
          shares[i] = static_cast<float>(static_cast<double>(from[i]) / (rows * columns[i]));
        }
        ForEachTap(shape_, stretch, [&](int64_t begin, int64_t end, int64_t at) {
          float* to = plane + at;
          for (int64_t i = begin; i < end; ++i, to += stride) *to += shares[i];
        });
      });
    });
  }

 private:
  template <typename Body>
  void ForPlanes(const Body& body) const {
    ParallelFor(shape_.planes, GrainOf(shape_), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) body(p);
    });
  }

  double Count(size_t axis, int64_t at) const {
    return static_cast<double>(shape_.axes[axis].count(at, shape_.counts_padding));
  }
  double Rows(const Stretch& stretch) const { return Count(0, stretch.z) * Count(1, stretch.y); }

  PoolShape shape_;
  std::vector<double> column_counts_;
};

// A pool whose window is the whole image.
class GlobalAveragePoolOp final : public PreparedOp {
 public:
  explicit GlobalAveragePoolOp(const PoolShape& shape) : shape_(shape) {}

  void Forward(const ForwardCall& call) override {
    const float* x = Floats(call.inputs[0]);
    float* y = Floats(call.outputs[0]);
    if (y == nullptr) return;
    const auto size = static_cast<double>(shape_.in());
    ForPlanes([&](int64_t p) {
      y[p] = static_cast<float>(Sum(x + p * shape_.in(), shape_.in()) / size);
    });
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const float* dy = Floats(call.output_gradients[0]);
    const float share = 1 / static_cast<float>(shape_.in());
    ForPlanes([&](int64_t p) {
      std::fill_n(Floats(gradient) + p * shape_.in(), shape_.in(), dy[p] * share);
    });
  }

 private:
  template <typename Body>
  void ForPlanes(const Body& body) const {
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, shape_.in()));
    ParallelFor(shape_.planes, grain, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) body(p);
    });
  }

  PoolShape shape_;
};

template <typename Op>
Result<std::unique_ptr<PreparedOp>> PreparePool(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const PoolShape shape, ReadPoolShape(spec));
  return Prepared<Op>(shape);
}

constexpr OpRow kPoolOps[] = {
    {"AveragePool", PreparePool<AveragePoolOp>},
    {"GlobalAveragePool", PreparePool<GlobalAveragePoolOp>},
    {"GlobalMaxPool", PreparePool<MaxPoolOp>},
    {"MaxPool", PreparePool<MaxPoolOp>},
};

}  // namespace

std::span<const OpRow> PoolOps() { return kPoolOps; }

// Col2Im: each image row gathers the rows of blocks that overlap it; gradient rows are cut out of
// the image's gradient.

namespace {

class Col2ImOp final : public PreparedOp {
 public:
  explicit Col2ImOp(const Col2ImShape& shape) : shape_(shape) {}

  void Forward(const ForwardCall& call) override {
    const float* x = Floats(call.inputs[0]);
    float* y = Floats(call.outputs[0]);
    const int64_t width = shape_.axes[2].in;
    const int64_t rows = shape_.image() / width;
    const int64_t grain = std::max<int64_t>(1, kGrain / width / shape_.block());
    ParallelFor(shape_.planes * rows, grain, [=, this](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const float* plane = x + row / rows * shape_.block() * shape_.blocks();
        SumRow(plane, row % rows, y + row * width);
      }
    });
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const float* dy = Floats(call.output_gradients[0]);
    float* dx = Floats(gradient);
    const int64_t width = shape_.axes[2].out;
    const int64_t rows = shape_.block() * (shape_.blocks() / width);
    const int64_t grain = std::max<int64_t>(1, kGrain / width);
    ParallelFor(shape_.planes * rows, grain, [=, this](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        CutRow(dy + row / rows * shape_.image(), row % rows, dx + row * width);
      }
    });
  }

 private:
  // Computes row `index` of an image by adding all blocks that overlap it, in the order of
  // positions in a block.
  void SumRow(const float* plane, int64_t index, float* row) const {
    const auto& [d, h, w] = shape_.axes;
    std::fill_n(row, w.in, 0.0F);
    for (int64_t i = 0; i < d.kernel; ++i) {
      const int64_t z = d.output_of(index / h.in, i);
      if (z < 0) continue;
      for (int64_t j = 0; j < h.kernel; ++j) {
        const int64_t y = h.output_of(index % h.in, j);
        if (y < 0) continue;
        for (int64_t k = 0; k < w.kernel; ++k) {
          const int64_t position = (i * h.kernel + j) * w.kernel + k;
          AddRow(plane + ((position * d.out + z) * h.out + y) * w.out, k, row);
        }
      }
    }
  }

  // Adds one row of blocks to an image row. `from` points to position k along the blocks' last
  // axis.
  void AddRow(const float* from, int64_t k, float* row) const {
    const WindowAxis& w = shape_.axes[2];
    const int64_t last = w.last_out(k);
    for (int64_t o = w.first_out(k); o < last; ++o) row[w.origin(o) + k * w.dilation] += from[o];
  }

  // Copies row `index` of an image's columns: the elements at one block position in one row of
  // blocks.
  void CutRow(const float* image, int64_t index, float* row) const {
    const auto& [d, h, w] = shape_.axes;
    const int64_t position = index / (d.out * h.out);
    const int64_t k = position % w.kernel;
    const int64_t y = h.origin(index % h.out) + position / w.kernel % h.kernel * h.dilation;
    const int64_t z =
        d.origin(index / h.out % d.out) + position / (w.kernel * h.kernel) * d.dilation;
    const bool is_inside = z >= 0 && z < d.in && y >= 0 && y < h.in;
    const int64_t first = is_inside ? w.first_out(k) : w.out;
    const int64_t last = is_inside ? w.last_out(k) : w.out;
    std::fill(row, row + first, 0.0F);
    for (int64_t o = first; o < last; ++o) {
      row[o] = image[(z * h.in + y) * w.in + w.origin(o) + k * w.dilation];
    }
    std::fill(row + last, row + w.out, 0.0F);
  }

  Col2ImShape shape_;
};

Result<std::unique_ptr<PreparedOp>> PrepareCol2Im(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const Col2ImShape shape, ReadCol2ImShape(spec));
  return Prepared<Col2ImOp>(shape);
}

constexpr OpRow kCol2ImOps[] = {{"Col2Im", PrepareCol2Im}};

}  // namespace

std::span<const OpRow> Col2ImOps() { return kCol2ImOps; }

}  // namespace ckplan::cpu
