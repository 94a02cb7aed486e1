// The gradient of the weights of a grouped convolution. With a few channels in a group there is no
// matrix to multiply: each weight is the product of an image of y and a shifted image of x, summed.
#include <algorithm>
#include <array>

#include "lib/cpu/conv_kernel.h"
#include "lib/cpu/parallel.h"
#include "lib/cpu/vector_clones.h"

namespace ckplan::cpu {

namespace {

constexpr int64_t kLanes = 8;

// sums[i % kLanes] += y[i] * x[i * stride]. In lanes, so that vector instructions may do it in any
// alignment with the same result.
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
  // Outputs [first, last) that read the input at position k of the kernel.
  int64_t first(int64_t k) const {
    const int64_t reach = begin - k * dilation;
    return reach <= 0 ? 0 : std::min(out, (reach + stride - 1) / stride);
  }
  int64_t last(int64_t k) const {
    const int64_t room = in + begin - k * dilation;
    return room <= 0 ? 0 : std::min(out, (room + stride - 1) / stride);
  }
};

class GroupedWeights final : public ConvKernel {
 public:
  explicit GroupedWeights(const ConvGeometry& geometry)
      : batch_(geometry.batch),
        in_channels_(geometry.in_channels),
        out_channels_(geometry.out_channels),
        group_in_(geometry.in_channels / geometry.groups),
        group_out_(geometry.out_channels / geometry.groups) {
    const Window& window = geometry.window;
    const size_t skipped = axes_.size() - window.rank();
    for (size_t i = 0; i < window.rank(); ++i) {
      axes_[i + skipped] = {window.in[i],      window.out[i],       window.kernel[i],
                            window.strides[i], window.dilations[i], window.begin[i]};
    }
  }

  int64_t workspace() const override { return 0; }

  void Run(const float* x, const float* y, float* result, void*) const override {
    const auto& [d, h, w] = axes_;
    const int64_t taps = d.kernel * h.kernel * w.kernel;
    const int64_t in = d.in * h.in * w.in;
    const int64_t out = d.out * h.out * w.out;
    ParallelFor(out_channels_ * group_in_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t pair = begin; pair < end; ++pair) {
        const int64_t y_channel = pair / group_in_;
        const int64_t x_channel = y_channel / group_out_ * group_in_ + pair % group_in_;
        for (int64_t tap = 0; tap < taps; ++tap) {
          double sum = 0;
          for (int64_t n = 0; n < batch_; ++n) {
            sum += Multiply(y + (n * out_channels_ + y_channel) * out,
                            x + (n * in_channels_ + x_channel) * in, tap);
          }
          result[pair * taps + tap] = static_cast<float>(sum);
        }
      }
    });
  }

 private:
  // The image of y by that of x, as far as this position of the kernel lies on x.
  double Multiply(const float* y, const float* x, int64_t tap) const {
    const auto& [d, h, w] = axes_;
    const int64_t i = tap / (h.kernel * w.kernel);
    const int64_t j = tap / w.kernel % h.kernel;
    const int64_t k = tap % w.kernel;
    const int64_t first = w.first(k);
    const int64_t count = w.last(k) - first;
    float lanes[kLanes] = {};
    for (int64_t a = d.first(i); a < d.last(i); ++a) {
      for (int64_t b = h.first(j); b < h.last(j); ++b) {
        const float* row_y = y + (a * h.out + b) * w.out + first;
        const float* row_x = x + (d.at(a, i) * h.in + h.at(b, j)) * w.in + w.at(first, k);
        AddProducts(row_y, row_x, w.stride, count, lanes);
      }
    }
    double sum = 0;
    for (const float lane : lanes) sum += static_cast<double>(lane);
    return sum;
  }

  int64_t batch_, in_channels_, out_channels_, group_in_, group_out_;
  std::array<Axis, 3> axes_;
};

}  // namespace

std::unique_ptr<ConvKernel> MakeGroupedWeights(const ConvGeometry& geometry) {
  return std::make_unique<GroupedWeights>(geometry);
}

}  // namespace ckplan::cpu
