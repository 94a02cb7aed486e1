// Conv and ConvTranspose.
#include <algorithm>
#include <cstring>

#include "lib/executor/cpu/dnnl_support.h"
#include "lib/executor/cpu/matmul_kernel.h"
#include "lib/executor/cpu/ops/conv_kernel.h"
#include "lib/executor/cpu/parallel.h"
#include "lib/executor/cpu/registry.h"
#include "lib/executor/cpu/vector_math.h"

namespace ckplan::cpu {

namespace {

// Adds bias[c] to each element of channel c.
void AddBias(float* y, const float* bias, int64_t batch, int64_t channels, int64_t positions) {
  const int64_t grain = std::max<int64_t>(1, kGrain / positions);
  ParallelFor(batch * channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float value = bias[row % channels];
      float* at = y + row * positions;
      for (int64_t i = 0; i < positions; ++i) at[i] += value;
    }
  });
}

// Sums each channel over samples and positions.
void SumChannels(const float* y, float* sums, int64_t batch, int64_t channels, int64_t positions) {
  const int64_t grain = std::max<int64_t>(1, kGrain / (batch * positions));
  ParallelFor(channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      double sum = 0;
      for (int64_t n = 0; n < batch; ++n) {
        sum += Sum(y + (n * channels + c) * positions, positions);
      }
      sums[c] = static_cast<float>(sum);
    }
  });
}

class ConvOp final : public PreparedOp {
 public:
  ConvOp(const OpSpec& spec, const ConvShape& shape)
      : is_transposed_(shape.is_transposed),
        has_bias_(shape.has_bias),
        batch_(shape.batch),
        channels_(is_transposed_ ? shape.in_channels : shape.out_channels),
        positions_(Product(is_transposed_ ? shape.window.in : shape.window.out)),
        forward_(
            MakeConvKernel(shape, is_transposed_ ? ConvJob::kBackwardData : ConvJob::kForward)) {
    if (spec.input(0).has_gradient) {
      data_ = MakeConvKernel(shape, is_transposed_ ? ConvJob::kForward : ConvJob::kBackwardData);
    }
    if (spec.input(1).has_gradient) weights_ = MakeConvKernel(shape, ConvJob::kBackwardWeights);
  }

  OpWorkspace workspace() const override {
    return {forward_->workspace(),
            std::max(data_ ? data_->workspace() : 0, weights_ ? weights_->workspace() : 0)};
  }

  void Forward(const ForwardCall& call) override {
    if (call.outputs[0] == nullptr) return;
    auto* y = static_cast<float*>(call.outputs[0]);
    const float* x = Floats(call.inputs[0]);
    const float* w = Floats(call.inputs[1]);
    forward_->Run(is_transposed_ ? w : x, is_transposed_ ? x : w, y, call.workspace);
    if (has_bias_) AddBias(y, Floats(call.inputs[2]), batch_, channels_, positions_);
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    const float* dy = Floats(call.output_gradients[0]);
    auto* result = static_cast<float*>(gradient);
    if (position == 0) {
      const float* w = Floats(call.inputs[1]);
      data_->Run(is_transposed_ ? dy : w, is_transposed_ ? w : dy, result, call.workspace);
    } else if (position == 1) {
      const float* x = Floats(call.inputs[0]);
      weights_->Run(is_transposed_ ? dy : x, is_transposed_ ? x : dy, result, call.workspace);
    } else {
      SumChannels(dy, result, batch_, channels_, positions_);
    }
  }

 private:
  bool is_transposed_;
  bool has_bias_;
  int64_t batch_, channels_, positions_;  // Dimensions of the output.
  std::unique_ptr<ConvKernel> forward_, data_, weights_;
};

Result<std::unique_ptr<PreparedOp>> PrepareConv(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const ConvShape shape, ReadConvShape(spec));
  return CatchDnnlErrors(spec, [&] { return std::make_unique<ConvOp>(spec, shape); });
}

constexpr OpRow kConvOps[] = {{"Conv", PrepareConv}, {"ConvTranspose", PrepareConv}};

}  // namespace

std::span<const OpRow> ConvOps() { return kConvOps; }

// Convolutions with a kernel of 1x1, computed as matrix products.

namespace {

// From this many positions per image on, one product per sample is faster than the blocked layout.
constexpr int64_t kPointwisePositions = 128;

bool IsAll(const Dims& values, int64_t value) {
  return std::all_of(values.begin(), values.end(), [value](int64_t v) { return v == value; });
}

bool IsPointwise(const ConvShape& shape) {
  const Window& window = shape.window;
  return shape.groups == 1 && IsAll(window.kernel, 1) && IsAll(window.strides, 1) &&
         IsAll(window.begin, 0) && IsAll(window.end, 0);
}

// Each sample of y is w times a sample of x, a matrix with one column per position.
class PointwiseConv final : public ConvKernel {
 public:
  PointwiseConv(const ConvShape& shape, ConvJob job)
      : job_(job),
        batch_(shape.batch),
        x_size_(shape.in_channels * Product(shape.window.in)),
        y_size_(shape.out_channels * Product(shape.window.in)),
        w_size_(shape.in_channels * shape.out_channels),
        product_(Shape(shape, job)) {}

  int64_t workspace() const override { return product_.workspace(); }

  void Run(const float* first, const float* second, float* result, void* workspace) const override {
    if (job_ != ConvJob::kBackwardWeights) {
      const float* w = job_ == ConvJob::kForward ? second : first;
      const float* from = job_ == ConvJob::kForward ? first : second;
      product_.Run(w, from, result, workspace);
      return;
    }
    std::memset(result, 0, static_cast<size_t>(w_size_) * sizeof(float));
    for (int64_t n = 0; n < batch_; ++n) {
      product_.Run(second + n * y_size_, first + n * x_size_, result, workspace);
    }
  }

 private:
  static ProductShape Shape(const ConvShape& shape, ConvJob job) {
    const int64_t in = shape.in_channels;
    const int64_t out = shape.out_channels;
    const int64_t positions = Product(shape.window.in);
    const int64_t batch = shape.batch;
    switch (job) {
      case ConvJob::kForward:
        return {.batch = batch, .m = out, .n = positions, .k = in, .a = {.is_shared = true}};
      case ConvJob::kBackwardData:
        return {.batch = batch,
                .m = in,
                .n = positions,
                .k = out,
                .a = {.is_transposed = true, .is_shared = true}};
      case ConvJob::kBackwardWeights:
        break;
    }
    return {.m = out, .n = in, .k = positions, .b = {.is_transposed = true}, .adds = true};
  }

  ConvJob job_;
  int64_t batch_;
  int64_t x_size_, y_size_, w_size_;  // Elements; x_size_ and y_size_ are per sample.
  MatMulKernel product_;
};

// For images with one position, y for all samples is x for all samples times w transposed.
class SinglePositionConv final : public ConvKernel {
 public:
  SinglePositionConv(const ConvShape& shape, ConvJob job)
      : job_(job), product_(Shape(shape, job)) {}

  int64_t workspace() const override { return product_.workspace(); }

  void Run(const float* first, const float* second, float* result, void* workspace) const override {
    if (job_ == ConvJob::kForward) {
      product_.Run(first, second, result, workspace);
    } else {
      product_.Run(second, first, result, workspace);
    }
  }

 private:
  static ProductShape Shape(const ConvShape& shape, ConvJob job) {
    const int64_t in = shape.in_channels;
    const int64_t out = shape.out_channels;
    const int64_t batch = shape.batch;
    if (job == ConvJob::kForward) {
      return {.m = batch, .n = out, .k = in, .b = {.is_transposed = true}};
    }
    if (job == ConvJob::kBackwardData) return {.m = batch, .n = in, .k = out};
    return {.m = out, .n = in, .k = batch, .a = {.is_transposed = true}};
  }

  ConvJob job_;
  MatMulKernel product_;
};

}  // namespace

std::unique_ptr<ConvKernel> MakePointwiseConv(const ConvShape& shape, ConvJob job) {
  if (!IsPointwise(shape)) return nullptr;
  const int64_t positions = Product(shape.window.in);
  if (positions == 1) return std::make_unique<SinglePositionConv>(shape, job);
  if (job != ConvJob::kForward && positions < kPointwisePositions) return nullptr;
  return std::make_unique<PointwiseConv>(shape, job);
}

}  // namespace ckplan::cpu
