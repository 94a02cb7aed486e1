#include "lib/cuda/host/host_libraries.h"

#include <array>

#include "lib/cuda/kernel.h"

namespace ckplan::cuda {

namespace {

constexpr int64_t kGemmWorkspace = 1024;  // Not 0, to test that callers provide it.

const void* Advance(const void* data, ElementType type, int64_t elements) {
  return static_cast<const char*>(data) + elements * SizeOf(type);
}

float At(const FloatsIn& data, const MatrixView& view, int64_t row, int64_t column) {
  return view.is_transposed ? data[column * view.row_stride + row]
                            : data[row * view.row_stride + column];
}

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

class HostConvolution final : public Convolution {
 public:
  HostConvolution(const ConvolutionShape& shape, ConvPass pass)
      : shape_(shape), axes_(shape), pass_(pass) {}

  int64_t workspace() const override { return 512; }

  void Run(void* x, void* w, void* y, void* workspace) override {
    CKPLAN_CHECK(workspace != nullptr, "the caller hands over the workspace");
    x_ = x;
    w_ = w;
    y_ = y;
    std::vector<double> sums(static_cast<size_t>(ResultSize()), 0.0);
    ForProducts([&](int64_t xi, int64_t wi, int64_t yi) {
      const FloatsIn xs(x_, shape_.type), ws(w_, shape_.type), ys(y_, shape_.type);
      switch (pass_) {
        case ConvPass::kForward:
          sums[static_cast<size_t>(yi)] +=
              static_cast<double>(xs[xi]) * static_cast<double>(ws[wi]);
          break;
        case ConvPass::kBackwardData:
          sums[static_cast<size_t>(xi)] +=
              static_cast<double>(ys[yi]) * static_cast<double>(ws[wi]);
          break;
        case ConvPass::kBackwardWeights:
          sums[static_cast<size_t>(wi)] +=
              static_cast<double>(ys[yi]) * static_cast<double>(xs[xi]);
          break;
      }
    });
    void* result = pass_ == ConvPass::kForward ? y : pass_ == ConvPass::kBackwardData ? x : w;
    const FloatsOut out(result, shape_.type);
    for (size_t i = 0; i < sums.size(); ++i) {
      out.Set(static_cast<int64_t>(i), static_cast<float>(sums[i]));
    }
  }

 private:
  int64_t ResultSize() const {
    const int64_t taps = Axes::Count(axes_.kernel);
    switch (pass_) {
      case ConvPass::kForward:
        return shape_.batch * shape_.groups * shape_.out_channels * Axes::Count(axes_.out);
      case ConvPass::kBackwardData:
        return shape_.batch * shape_.groups * shape_.in_channels * Axes::Count(axes_.in);
      case ConvPass::kBackwardWeights:
        return shape_.groups * shape_.out_channels * shape_.in_channels * taps;
    }
    return 0;
  }

  // Calls body with the indices in x, w and y of every product that the convolution sums.
  template <typename Body>
  void ForProducts(const Body& body) const {
    const int64_t positions = Axes::Count(axes_.out);
    const int64_t inputs = Axes::Count(axes_.in);
    const int64_t taps = Axes::Count(axes_.kernel);
    const int64_t filters = shape_.groups * shape_.out_channels;
    for (int64_t n = 0; n < shape_.batch; ++n) {
      for (int64_t f = 0; f < filters; ++f) {
        const int64_t group = f / shape_.out_channels;
        for (int64_t c = 0; c < shape_.in_channels; ++c) {
          const int64_t channel =
              n * shape_.groups * shape_.in_channels + group * shape_.in_channels + c;
          for (int64_t p = 0; p < positions; ++p) {
            for (int64_t tap = 0; tap < taps; ++tap) {
              const int64_t at = axes_.Input(p, tap);
              if (at < 0) continue;
              body(channel * inputs + at, (f * shape_.in_channels + c) * taps + tap,
                   (n * filters + f) * positions + p);
            }
          }
        }
      }
    }
  }

  ConvolutionShape shape_;
  Axes axes_;
  ConvPass pass_;
  void *x_ = nullptr, *w_ = nullptr, *y_ = nullptr;
};

class HostLibraries final : public Libraries {
 public:
  int64_t GemmWorkspace(const GemmShape&) const override { return kGemmWorkspace; }

  void Gemm(const GemmShape& shape, const void* a, const void* b, void* c,
            void* workspace) override {
    CKPLAN_CHECK(workspace != nullptr, "the caller hands over the workspace");
    CKPLAN_CHECK(shape.a.type == shape.b.type, "cuBLAS multiplies matrices of one type");
    for (int64_t i = 0; i < shape.batch; ++i) {
      const FloatsIn as(Advance(a, shape.a.type, i * shape.a.batch_stride), shape.a.type);
      const FloatsIn bs(Advance(b, shape.b.type, i * shape.b.batch_stride), shape.b.type);
      void* to = static_cast<char*>(c) + i * shape.c.batch_stride * SizeOf(shape.c.type);
      Multiply(shape, as, bs, FloatsOut(to, shape.c.type));
    }
  }

  Result<std::unique_ptr<Convolution>> PrepareConvolution(const ConvolutionShape& shape,
                                                          ConvPass pass) override {
    CKPLAN_CHECK(shape.in.size() == 2 || shape.in.size() == 3, "cuDNN has two axes or three");
    std::unique_ptr<Convolution> convolution = std::make_unique<HostConvolution>(shape, pass);
    return convolution;
  }

 private:
  static void Multiply(const GemmShape& shape, const FloatsIn& a, const FloatsIn& b,
                       const FloatsOut& c) {
    for (int64_t row = 0; row < shape.m; ++row) {
      for (int64_t column = 0; column < shape.n; ++column) {
        double sum = 0;
        for (int64_t k = 0; k < shape.k; ++k) {
          sum += static_cast<double>(At(a, shape.a, row, k)) *
                 static_cast<double>(At(b, shape.b, k, column));
        }
        const int64_t at = row * shape.c.row_stride + column;
        const float before = shape.beta == 0 ? 0 : shape.beta * c[at];
        c.Set(at, static_cast<float>(static_cast<double>(shape.alpha) * sum) + before);
      }
    }
  }
};

}  // namespace

std::unique_ptr<Libraries> MakeHostLibraries() { return std::make_unique<HostLibraries>(); }

}  // namespace ckplan::cuda
