#include <array>
#include <vector>

#include "lib/base/check.h"
#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/testing/emulated/emulated_operations.h"
#include "lib/executor/cuda/testing/emulated/emulated_runtime.h"

namespace ckplan::cuda {

namespace {

// A convolution's axes, always three.
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

  // Calls body with the indices in x, w and y of every product in the convolution's sums.
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
  // Returns an element's offset in memory.
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

namespace {

// One operation's attribute names.
struct OperationNames {
  ConvPass pass;
  EmulatedName alpha, beta, convolution, x, w, y;
};

OperationNames NamesOf(cudnnBackendDescriptorType_t kind) {
  if (kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR) {
    return {ConvPass::kForward,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
  }
  if (kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR) {
    return {ConvPass::kBackwardData,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
  }
  return {ConvPass::kBackwardWeights,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
}

std::vector<int64_t> SizesOf(const EmulatedDescriptor& tensor) {
  return tensor.Integers(CUDNN_ATTR_TENSOR_DIMENSIONS);
}

cudnnDataType_t TypeOfTensor(const EmulatedDescriptor& tensor) {
  return tensor.Get<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
}

std::vector<int64_t> SpatialSizesOf(const EmulatedDescriptor& tensor) {
  const std::vector<int64_t> dims = SizesOf(tensor);
  return {dims.begin() + 2, dims.end()};
}

// Returns the convolution that an operation computes.
ConvolutionShape ShapeOf(const EmulatedDescriptor& operation) {
  const OperationNames names = NamesOf(operation.kind);
  const EmulatedDescriptor& x = operation.Part(names.x);
  const EmulatedDescriptor& w = operation.Part(names.w);
  const EmulatedDescriptor& y = operation.Part(names.y);
  const EmulatedDescriptor& convolution = operation.Part(names.convolution);
  CKPLAN_CHECK(TypeOfTensor(x) == TypeOfTensor(y) && TypeOfTensor(x) == TypeOfTensor(w),
               "all tensors of a convolution have the same type");
  const std::vector<int64_t> x_dims = SizesOf(x), w_dims = SizesOf(w), y_dims = SizesOf(y);
  const int64_t groups = x_dims[1] / w_dims[1];
  CKPLAN_CHECK(x_dims[0] == y_dims[0] && y_dims[1] == w_dims[0] && groups > 0 &&
                   x_dims[1] == w_dims[1] * groups && w_dims[0] % groups == 0,
               "the shapes of a convolution's tensors match");
  const auto are_ordered = [&](bool is_channels_last) {
    return IsEmulatedOrder(x, is_channels_last) && IsEmulatedOrder(w, is_channels_last) &&
           IsEmulatedOrder(y, is_channels_last);
  };
  CKPLAN_CHECK(are_ordered(false) || are_ordered(true),
               "a convolution's tensors are dense and in the same order");
  ConvolutionShape shape;
  shape.is_channels_last = !are_ordered(false);
  shape.type =
      TypeOfTensor(x) == CUDNN_DATA_BFLOAT16 ? ElementType::kBFloat16 : ElementType::kFloat32;
  shape.batch = x_dims[0];
  shape.groups = groups;
  shape.in_channels = w_dims[1];
  shape.out_channels = w_dims[0] / groups;
  shape.in = SpatialSizesOf(x);
  shape.out = SpatialSizesOf(y);
  shape.kernel = SpatialSizesOf(w);
  if (IsPlanted("a convolution has a stride too many")) ++shape.out[0];
  shape.strides = convolution.Integers(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  shape.dilations = convolution.Integers(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  shape.pads = convolution.Integers(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  return shape;
}

// Returns the tensor for the operation's result.
const EmulatedDescriptor& ResultOf(const EmulatedDescriptor& operation) {
  const OperationNames names = NamesOf(operation.kind);
  return operation.Part(names.pass == ConvPass::kForward        ? names.y
                        : names.pass == ConvPass::kBackwardData ? names.x
                                                                : names.w);
}

// Flips bits of the result, different ones each time.
void FlipBits(void* result) {
  static unsigned times = 0;
  auto* const low = static_cast<unsigned char*>(result);
  *low = static_cast<unsigned char>(*low ^ (++times % 256));
}

}  // namespace

bool IsEmulatedConvolution(cudnnBackendDescriptorType_t kind) {
  return kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ||
         kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ||
         kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
}

void CheckEmulatedConvolution(const EmulatedDescriptor& convolution) {
  CKPLAN_CHECK(convolution.Get<cudnnConvolutionMode_t>(CUDNN_ATTR_CONVOLUTION_CONV_MODE) ==
                   CUDNN_CROSS_CORRELATION,
               "ONNX does not flip kernels");
  CKPLAN_CHECK(
      convolution.Get<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE) == CUDNN_DATA_FLOAT,
      "sums are computed in float32");
  const auto axes =
      static_cast<size_t>(convolution.Get<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS));
  for (const EmulatedName name :
       {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS,
        CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_ATTR_CONVOLUTION_DILATIONS}) {
    CKPLAN_CHECK(convolution.Integers(name).size() == axes,
                 "a convolution has a stride, a dilation and pads for each axis");
  }
  CKPLAN_CHECK(convolution.Integers(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS) ==
                   convolution.Integers(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS),
               "cuDNN pads both sides equally");
}

void CheckEmulatedConvolutionOperation(const EmulatedDescriptor& operation) {
  const OperationNames names = NamesOf(operation.kind);
  CKPLAN_CHECK(operation.Get<double>(names.alpha) == 1 && operation.Get<double>(names.beta) == 0,
               "a convolution overwrites its result");
  const ConvolutionShape shape = ShapeOf(operation);
  const size_t axes = shape.in.size();
  CKPLAN_CHECK(
      shape.out.size() == axes && shape.kernel.size() == axes && shape.strides.size() == axes,
      "a convolution's descriptors have the same number of axes");
  for (size_t i = 0; i < axes; ++i) {
    const int64_t covered = (shape.kernel[i] - 1) * shape.dilations[i] + 1;
    CKPLAN_CHECK(shape.out[i] == (shape.in[i] + 2 * shape.pads[i] - covered) / shape.strides[i] + 1,
                 "a convolution's output size matches its input size");
  }
}

std::function<void()> BindEmulatedConvolution(const EmulatedDescriptor& operation,
                                              const EmulatedPointers& pointer_of,
                                              bool is_deterministic) {
  const OperationNames names = NamesOf(operation.kind);
  void* const x = pointer_of(operation.Part(names.x));
  void* const w = pointer_of(operation.Part(names.w));
  void* const y = pointer_of(operation.Part(names.y));
  void* const result = pointer_of(ResultOf(operation));
  return [=, shape = ShapeOf(operation)] {
    RunPlainConvolution(shape, names.pass, x, w, y);
    if (!is_deterministic) FlipBits(result);
  };
}

}  // namespace ckplan::cuda
