#include "lib/executor/cuda/played/plain_convolution.h"

#include <array>

#include "lib/executor/cuda/kernel.h"

namespace ckplan::cuda {

namespace {

// The axes of a convolution, always three of them.
struct Axes {
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1};
  std::array<int64_t, 3> strides{1, 1, 1}, dilations{1, 1, 1}, pads{0, 0, 0};

  explicit Axes(const ConvolutionShape& shape) {
    const size_t lacking = 3 - shape.in.size();
    for (size_t i = 0; i < shape.in.size(); ++i) {
      in[lacking + i] = shape.in[i];
      out[lacking + i] = shape.out[i];
      kernel[lacking + i] = shape.kernel[i];
      strides[lacking + i] = shape.strides[i];
      dilations[lacking + i] = shape.dilations[i];
      pads[lacking + i] = shape.pads[i];
    }
  }

  static int64_t Count(const std::array<int64_t, 3>& dims) { return dims[0] * dims[1] * dims[2]; }
  // Returns the index of the input that tap `tap` of output `position` reads, or -1 if it is out of
  // range.
  int64_t Input(int64_t position, int64_t tap) const {
    int64_t index = 0;
    int64_t scale = 1;
    for (size_t i = 3; i-- > 0;) {
      const int64_t at = position % out[i] * strides[i] + tap % kernel[i] * dilations[i] - pads[i];
      if (at < 0 || at >= in[i]) return -1;
      index += at * scale;
      scale *= in[i];
      position /= out[i];
      tap /= kernel[i];
    }
    return index;
  }
};

std::vector<double> ReadAll(const void* data, ElementType type, int64_t count) {
  const FloatsIn from(data, type);
  std::vector<double> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    values[static_cast<size_t>(i)] = static_cast<double>(from[i]);
  }
  return values;
}

void WriteAll(const std::vector<double>& values, void* data, ElementType type) {
  const FloatsOut to(data, type);
  for (size_t i = 0; i < values.size(); ++i) {
    to.Set(static_cast<int64_t>(i), static_cast<float>(values[i]));
  }
}

class PlainConvolution {
 public:
  explicit PlainConvolution(const ConvolutionShape& shape)
      : shape_(shape),
        positions_(Axes::Count(Axes(shape).out)),
        inputs_(Axes::Count(Axes(shape).in)),
        taps_(Axes::Count(Axes(shape).kernel)) {
    const Axes axes(shape);
    for (int64_t p = 0; p < positions_; ++p) {
      for (int64_t tap = 0; tap < taps_; ++tap) read_.push_back(axes.Input(p, tap));
    }
  }

  int64_t XSize() const { return shape_.batch * shape_.groups * shape_.in_channels * inputs_; }
  int64_t YSize() const { return shape_.batch * shape_.groups * shape_.out_channels * positions_; }
  int64_t WSize() const { return shape_.groups * shape_.out_channels * shape_.in_channels * taps_; }

  // Calls body with the indices in x, w and y of every product that the convolution sums.
  template <typename Body>
  void ForProducts(const Body& body) const {
    const int64_t filters = shape_.groups * shape_.out_channels;
    const int64_t channels = shape_.groups * shape_.in_channels;
    for (int64_t n = 0; n < shape_.batch; ++n) {
      for (int64_t f = 0; f < filters; ++f) {
        const int64_t group = f / shape_.out_channels;
        for (int64_t c = 0; c < shape_.in_channels; ++c) {
          const int64_t channel = group * shape_.in_channels + c;
          const int64_t* at = read_.data();
          for (int64_t p = 0; p < positions_; ++p) {
            for (int64_t tap = 0; tap < taps_; ++tap, ++at) {
              if (*at < 0) continue;
              body(Place(n, channel, channels, *at, inputs_),
                   Place(f, c, shape_.in_channels, tap, taps_),
                   Place(n, f, filters, p, positions_));
            }
          }
        }
      }
    }
  }

 private:
  // Returns where an element lies in memory.
  size_t Place(int64_t sample, int64_t channel, int64_t channels, int64_t at, int64_t count) const {
    const int64_t place = shape_.is_channels_last ? (sample * count + at) * channels + channel
                                                  : (sample * channels + channel) * count + at;
    return static_cast<size_t>(place);
  }

  const ConvolutionShape& shape_;
  int64_t positions_, inputs_, taps_;
  std::vector<int64_t> read_;  // The input that each position reads with each tap, or -1.
};

}  // namespace

void RunPlainConvolution(const ConvolutionShape& shape, ConvPass pass, void* x, void* w, void* y) {
  const PlainConvolution convolution(shape);
  const auto read = [&](const void* data, int64_t count) {
    return ReadAll(data, shape.type, count);
  };
  switch (pass) {
    case ConvPass::kForward: {
      const std::vector<double> xs = read(x, convolution.XSize());
      const std::vector<double> ws = read(w, convolution.WSize());
      std::vector<double> sums(static_cast<size_t>(convolution.YSize()), 0.0);
      convolution.ForProducts(
          [&](size_t xi, size_t wi, size_t yi) { sums[yi] += xs[xi] * ws[wi]; });
      return WriteAll(sums, y, shape.type);
    }
    case ConvPass::kBackwardData: {
      const std::vector<double> ys = read(y, convolution.YSize());
      const std::vector<double> ws = read(w, convolution.WSize());
      std::vector<double> sums(static_cast<size_t>(convolution.XSize()), 0.0);
      convolution.ForProducts(
          [&](size_t xi, size_t wi, size_t yi) { sums[xi] += ys[yi] * ws[wi]; });
      return WriteAll(sums, x, shape.type);
    }
    case ConvPass::kBackwardWeights: {
      const std::vector<double> xs = read(x, convolution.XSize());
      const std::vector<double> ys = read(y, convolution.YSize());
      std::vector<double> sums(static_cast<size_t>(convolution.WSize()), 0.0);
      convolution.ForProducts(
          [&](size_t xi, size_t wi, size_t yi) { sums[wi] += ys[yi] * xs[xi]; });
      return WriteAll(sums, w, shape.type);
    }
  }
}

}  // namespace ckplan::cuda
