// The gradient of the weights of a grouped convolution. A few channels per group do not make a
// matrix product worthwhile: each weight is the dot product of an image of y and a shifted image of
// x.
#include <algorithm>
#include <array>

#include "lib/executor/cpu/ops/conv_kernel.h"
#include "lib/executor/cpu/parallel.h"
#include "lib/executor/cpu/vector_clones.h"

namespace ckplan::cpu {

namespace {

constexpr int64_t kLanes = 8;

// Computes sums[i % kLanes] += y[i] * x[i * stride]. The fixed lanes make the result independent of
// the alignment that vector instructions need.
CKPLAN_VECTOR_CLONES
void AddProducts(const float* y, const float* x, int64_t stride, int64_t count, float* sums) {
  float lanes[kLanes];
  std::copy_n(sums, kLanes, lanes);
  int64_t i = 0;
  if (stride == 1) {
    for (; i + kLanes <= count; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += y[i + lane] * x[i + lane];
    }
  }
  for (; i < count; ++i) lanes[i % kLanes] += y[i] * x[i * stride];
  std::copy_n(lanes, kLanes, sums);
}

struct Axis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, begin = 0;

  int64_t at(int64_t o, int64_t k) const { return o * stride - begin + k * dilation; }
  // The outputs [first, last) whose input at position k of the kernel lies inside the image.
  int64_t first(int64_t k) const {
    const int64_t reach = begin - k * dilation;
    return reach <= 0 ? 0 : std::min(out, (reach + stride - 1) / stride);
  }
  int64_t last(int64_t k) const {
    const int64_t room = in + begin - k * dilation;
    return room <= 0 ? 0 : std::min(out, (room + stride - 1) / stride);
  }
};

// Images as wide as their result, whose rows are too short for vector instructions, are multiplied
// as a single row. Elements of y whose counterpart in x would lie in another row are set to zero.
constexpr int64_t kFlatImage = 1024;
constexpr int64_t kFlatWidth = 24;

class GroupedWeights final : public ConvKernel {
 public:
  explicit GroupedWeights(const ConvShape& shape)
      : batch_(shape.batch),
        in_channels_(shape.in_channels),
        out_channels_(shape.out_channels),
        group_in_(shape.in_channels / shape.groups),
        group_out_(shape.out_channels / shape.groups) {
    const Window& window = shape.window;
    const size_t skipped = axes_.size() - window.rank();
    for (size_t i = 0; i < window.rank(); ++i) {
      axes_[i + skipped] = {window.in[i],      window.out[i],       window.kernel[i],
                            window.strides[i], window.dilations[i], window.begin[i]};
    }
  }

  int64_t workspace() const override { return 0; }

  void Run(const float* x, const float* y, float* result, void*) const override {
    const int64_t taps = axes_[0].kernel * axes_[1].kernel * axes_[2].kernel;
    ParallelFor(out_channels_ * group_in_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t pair = begin; pair < end; ++pair) MakeWeights(x, y, pair, result + pair * taps);
    });
  }

 private:
  // Computes the weights between one channel of y and one channel of x.
  void MakeWeights(const float* x, const float* y, int64_t pair, float* weights) const {
    const auto& [d, h, w] = axes_;
    const int64_t in = d.in * h.in * w.in;
    const int64_t out = d.out * h.out * w.out;
    const int64_t y_channel = pair / group_in_;
    const int64_t x_channel = y_channel / group_out_ * group_in_ + pair % group_in_;
    const bool is_flat = d.in == 1 && d.kernel == 1 && w.stride == 1 && h.stride == 1 &&
                         w.in == w.out && w.out <= kFlatWidth && out <= kFlatImage;
    const int64_t rows = d.kernel * h.kernel;
    for (int64_t k = 0; k < w.kernel; ++k) {
      for (int64_t row = 0; row < rows; ++row) {
        double sum = 0;
        for (int64_t n = 0; n < batch_; ++n) {
          const float* from_y = y + (n * out_channels_ + y_channel) * out;
          const float* from_x = x + (n * in_channels_ + x_channel) * in;
          sum += is_flat ? MultiplyFlat(from_y, from_x, row, k)
                         : Multiply(from_y, from_x, row / h.kernel, row % h.kernel, k);
        }
        weights[row * w.kernel + k] = static_cast<float>(sum);
      }
    }
  }

  static double SumLanes(const float* lanes) {
    double sum = 0;
    for (int64_t lane = 0; lane < kLanes; ++lane) sum += static_cast<double>(lanes[lane]);
    return sum;
  }

  // Returns the dot product of the image of y with the image of x shifted by position (i, j, k) of
  // the kernel, where the two overlap.
  double Multiply(const float* y, const float* x, int64_t i, int64_t j, int64_t k) const {
    const auto& [d, h, w] = axes_;
    const int64_t first = w.first(k);
    const int64_t count = w.last(k) - first;
    if (count <= 0) return 0;
    float lanes[kLanes] = {};
    for (int64_t a = d.first(i); a < d.last(i); ++a) {
      for (int64_t b = h.first(j); b < h.last(j); ++b) {
        const float* row_y = y + (a * h.out + b) * w.out + first;
        const float* row_x = x + (d.at(a, i) * h.in + h.at(b, j)) * w.in + w.at(first, k);
        AddProducts(row_y, row_x, w.stride, count, lanes);
      }
    }
    return SumLanes(lanes);
  }

  double MultiplyFlat(const float* y, const float* x, int64_t j, int64_t k) const {
    const auto& [d, h, w] = axes_;
    const int64_t first_row = h.first(j);
    const int64_t last_row = h.last(j);
    const int64_t first = w.first(k);
    const int64_t last = w.last(k);
    if (first_row >= last_row || first >= last) return 0;
    float masked[kFlatImage];
    for (int64_t b = first_row; b < last_row; ++b) {
      float* row = masked + b * w.out;
      std::copy_n(y + b * w.out, w.out, row);
      std::fill(row, row + first, 0.0F);
      std::fill(row + last, row + w.out, 0.0F);
    }
    float lanes[kLanes] = {};
    const int64_t begin = first_row * w.out + first;
    const int64_t end = (last_row - 1) * w.out + last;
    AddProducts(masked + begin, x + h.at(first_row, j) * w.in + w.at(first, k), 1, end - begin,
                lanes);
    return SumLanes(lanes);
  }

  int64_t batch_, in_channels_, out_channels_, group_in_, group_out_;
  std::array<Axis, 3> axes_;
};

}  // namespace

std::unique_ptr<ConvKernel> MakeGroupedWeights(const ConvShape& shape) {
  return std::make_unique<GroupedWeights>(shape);
}

}  // namespace ckplan::cpu
