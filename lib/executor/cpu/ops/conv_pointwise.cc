// Convolutions with a kernel of 1x1, computed as matrix products.
#include <algorithm>
#include <cstring>

#include "lib/executor/cpu/matmul_kernel.h"
#include "lib/executor/cpu/ops/conv_kernel.h"

namespace ckplan::cpu {

namespace {

// Minimum positions per image for which one product per sample is faster than the blocked layout.
constexpr int64_t kPointwisePositions = 128;

bool IsAll(const Dims& values, int64_t value) {
  return std::all_of(values.begin(), values.end(), [value](int64_t v) { return v == value; });
}

bool IsPointwise(const ConvShape& shape) {
  const Window& window = shape.window;
  return shape.groups == 1 && IsAll(window.kernel, 1) && IsAll(window.strides, 1) &&
         IsAll(window.begin, 0) && IsAll(window.end, 0);
}

// Each sample of y is w times the sample of x, which is a matrix with one column per position.
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

// For images with one position, y of all samples is the product of x of all samples and w
// transposed.
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
