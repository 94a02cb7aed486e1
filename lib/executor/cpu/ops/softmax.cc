// Softmax and LogSoftmax: along one axis or, before opset 13, over all axes from `axis` on.
#include "lib/problem/ops/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/executor/cpu/families.h"
#include "lib/executor/cpu/floats.h"
#include "lib/executor/cpu/ops/softmax_row.h"
#include "lib/executor/cpu/parallel.h"
#include "lib/executor/cpu/vector_math.h"

namespace ckplan::cpu {

namespace {

// The number of columns processed together if the axis is not the last one: at least a cache line.
constexpr int64_t kColumns = 64;

template <bool kIsLog>
class SoftmaxOp final : public PreparedOp {
 public:
  SoftmaxOp(const OpSpec& spec, const SoftmaxShape& shape)
      : shape_(shape), is_guarded_(IsGuarded(spec)), count_(spec.input(0).elements()) {}

  void Forward(const ForwardCall& call) override {
    const float* x = Floats(call.inputs[0]);
    float* y = Floats(call.outputs[0]);
    if (y == nullptr) return;
    if (shape_.inner == 1) {
      ForRows([&](int64_t at) {
        if constexpr (kIsLog) LogSoftmaxRow(x + at, y + at, shape_.size);
        if constexpr (!kIsLog) SoftmaxRow(x + at, y + at, shape_.size);
      });
    } else {
      ForColumns([&](int64_t at, int64_t count) { ForwardColumns(x + at, y + at, count); });
    }
    if (is_guarded_) ClearNaNs(y);
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const float* y = Floats(call.outputs[0]);
    const float* dy = Floats(call.output_gradients[0]);
    float* dx = Floats(gradient);
    if (shape_.inner == 1) {
      ForRows([&](int64_t at) {
        if constexpr (kIsLog) LogSoftmaxRowGradient(y + at, dy + at, dx + at, shape_.size);
        if constexpr (!kIsLog) SoftmaxRowGradient(y + at, dy + at, dx + at, shape_.size);
      });
    } else {
      ForColumns(
          [&](int64_t at, int64_t count) { BackwardColumns(y + at, dy + at, dx + at, count); });
    }
  }

 private:
  void ClearNaNs(float* y) const {
    ParallelFor(count_, kGrain, [y](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = y[i] == y[i] ? y[i] : 0.0F;
    });
  }

  template <typename Body>
  void ForRows(const Body& body) const {
    ParallelFor(shape_.outer, std::max<int64_t>(1, kGrain / 8 / shape_.size),
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) body(row * shape_.size);
                });
  }

  // Calls body(offset, count) for groups of `count` neighbouring columns.
  template <typename Body>
  void ForColumns(const Body& body) const {
    const int64_t blocks = (shape_.inner + kColumns - 1) / kColumns;
    const int64_t grain = std::max<int64_t>(1, kGrain / 8 / (shape_.size * kColumns));
    ParallelFor(shape_.outer * blocks, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % blocks * kColumns;
        body(i / blocks * shape_.size * shape_.inner + first,
             std::min(kColumns, shape_.inner - first));
      }
    });
  }

  void ForwardColumns(const float* x, float* y, int64_t count) const {
    float highest[kColumns];
    float sum[kColumns] = {};
    std::fill(highest, highest + kColumns, -std::numeric_limits<float>::infinity());
    ForElements(count, [&](int64_t at, int64_t c) {
      highest[c] = x[at] > highest[c] || x[at] != x[at] ? x[at] : highest[c];
    });
    ForElements(count, [&](int64_t at, int64_t c) {
      y[at] = Exp(x[at] - highest[c]);
      sum[c] += y[at];
    });
    if constexpr (kIsLog) {
      for (int64_t c = 0; c < count; ++c) sum[c] = std::log(sum[c]);
      ForElements(count, [&](int64_t at, int64_t c) { y[at] = (x[at] - highest[c]) - sum[c]; });
    } else {
      ForElements(count, [&](int64_t at, int64_t c) { y[at] /= sum[c]; });
    }
  }

  void BackwardColumns(const float* y, const float* dy, float* dx, int64_t count) const {
    float sum[kColumns] = {};
    if constexpr (kIsLog) {
      ForElements(count, [&](int64_t at, int64_t c) { sum[c] += dy[at]; });
      ForElements(count, [&](int64_t at, int64_t c) { dx[at] = dy[at] - Exp(y[at]) * sum[c]; });
    } else {
      ForElements(count, [&](int64_t at, int64_t c) { sum[c] += dy[at] * y[at]; });
      ForElements(count, [&](int64_t at, int64_t c) { dx[at] = y[at] * (dy[at] - sum[c]); });
    }
  }

  // Calls body(offset, column) for all columns of one row, and then of the next.
  template <typename Body>
  void ForElements(int64_t count, const Body& body) const {
    for (int64_t i = 0; i < shape_.size; ++i) {
      for (int64_t c = 0; c < count; ++c) body(i * shape_.inner + c, c);
    }
  }

  SoftmaxShape shape_;
  bool is_guarded_;
  int64_t count_;
};

template <bool kIsLog>
Result<std::unique_ptr<PreparedOp>> PrepareSoftmax(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const SoftmaxShape shape, ReadSoftmaxShape(spec));
  return Prepared<SoftmaxOp<kIsLog>>(spec, shape);
}

constexpr OpRow kSoftmaxOps[] = {{"LogSoftmax", PrepareSoftmax<true>},
                                 {"Softmax", PrepareSoftmax<false>}};

}  // namespace

std::span<const OpRow> SoftmaxOps() { return kSoftmaxOps; }

}  // namespace ckplan::cpu
