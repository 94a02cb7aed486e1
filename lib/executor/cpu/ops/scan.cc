// Operators along one axis: cumulative sums, and positions of maxima and minima.
#include <algorithm>
#include <numeric>

#include "lib/executor/cpu/parallel.h"
#include "lib/executor/cpu/registry.h"
#include "lib/executor/cpu/strided_copy.h"
#include "lib/executor/scalar/integers.h"
#include "lib/problem/ops/reduce.h"

namespace ckplan::cpu {

namespace {

template <typename T>
void RunningSum(const AxisView& view, bool is_exclusive, bool is_reverse, const T* x, T* y) {
  const int64_t grain = std::max<int64_t>(1, kGrain / (view.size * view.inner));
  ParallelFor(view.outer, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t step = 0; step < view.size; ++step) {
        const int64_t index = is_reverse ? view.size - 1 - step : step;
        const int64_t before = is_reverse ? index + 1 : index - 1;
        T* to = y + (row * view.size + index) * view.inner;
        const T* sum = step == 0 ? nullptr : y + (row * view.size + before) * view.inner;
        const T* add =
            x + (row * view.size + (is_exclusive && step > 0 ? before : index)) * view.inner;
        for (int64_t i = 0; i < view.inner; ++i) {
          if (step == 0) {
            to[i] = is_exclusive ? T{0} : add[i];
          } else if constexpr (std::is_same_v<T, float>) {
            to[i] = sum[i] + add[i];
          } else {
            to[i] = scalar::WrapAdd(sum[i], add[i]);
          }
        }
      }
    }
  });
}

template <typename T>
class CumSumOp final : public PreparedOp {
 public:
  explicit CumSumOp(const CumSumShape& shape)
      : view_(shape.view), is_exclusive_(shape.is_exclusive), is_reverse_(shape.is_reverse) {}

  void Forward(const ForwardCall& call) override {
    if (view_.size * view_.inner == 0) return;
    RunningSum(view_, is_exclusive_, is_reverse_, static_cast<const T*>(call.inputs[0]),
               static_cast<T*>(call.outputs[0]));
  }
  // An element contributes to all sums from its position on, so its gradient is the cumulative sum
  // of the sums' gradients from the opposite end.
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    if (view_.size * view_.inner == 0) return;
    RunningSum(view_, is_exclusive_, !is_reverse_,
               static_cast<const float*>(call.output_gradients[0]), static_cast<float*>(gradient));
  }

 private:
  AxisView view_;
  bool is_exclusive_, is_reverse_;
};

Result<std::unique_ptr<PreparedOp>> PrepareCumSum(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const CumSumShape shape, ReadCumSumShape(spec));
  if (spec.input(0).type == ElementType::kInt32) return Prepared<CumSumOp<int32_t>>(shape);
  if (spec.input(0).type == ElementType::kInt64) return Prepared<CumSumOp<int64_t>>(shape);
  return Prepared<CumSumOp<float>>(shape);
}

template <typename T>
class ArgExtremeOp final : public PreparedOp {
 public:
  explicit ArgExtremeOp(const ArgShape& shape)
      : view_(shape.view), is_max_(shape.is_max), takes_last_(shape.takes_last) {}

  void Forward(const ForwardCall& call) override {
    const auto* x = static_cast<const T*>(call.inputs[0]);
    auto* y = static_cast<int64_t*>(call.outputs[0]);
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, view_.size));
    ParallelFor(view_.outer * view_.inner, grain, [=, this](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* row = x + i / view_.inner * view_.size * view_.inner + i % view_.inner;
        int64_t best = 0;
        for (int64_t k = 1; k < view_.size; ++k) {
          const T value = row[k * view_.inner];
          const T so_far = row[best * view_.inner];
          const bool is_better = is_max_ ? value > so_far : value < so_far;
          if (is_better || (takes_last_ && value == so_far)) best = k;
        }
        y[i] = best;
      }
    });
  }

 private:
  AxisView view_;
  bool is_max_, takes_last_;
};

Result<std::unique_ptr<PreparedOp>> PrepareArg(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const ArgShape shape, ReadArgShape(spec));
  if (spec.input(0).type == ElementType::kInt32) return Prepared<ArgExtremeOp<int32_t>>(shape);
  if (spec.input(0).type == ElementType::kInt64) return Prepared<ArgExtremeOp<int64_t>>(shape);
  return Prepared<ArgExtremeOp<float>>(shape);
}

// Writes 1 at the first maximum, and 0 elsewhere.
class HardmaxOp final : public PreparedOp {
 public:
  explicit HardmaxOp(const AxisView& view) : view_(view) {}

  void Forward(const ForwardCall& call) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    auto* y = static_cast<float*>(call.outputs[0]);
    if (view_.size == 0) return;
    const int64_t grain = std::max<int64_t>(1, kGrain / view_.size);
    ParallelFor(view_.outer * view_.inner, grain, [=, this](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i / view_.inner * view_.size * view_.inner + i % view_.inner;
        int64_t best = 0;
        for (int64_t k = 0; k < view_.size; ++k) {
          y[first + k * view_.inner] = 0;
          if (x[first + k * view_.inner] > x[first + best * view_.inner]) best = k;
        }
        y[first + best * view_.inner] = 1;
      }
    });
  }

 private:
  AxisView view_;
};

Result<std::unique_ptr<PreparedOp>> PrepareHardmax(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const AxisView view, ReadHardmaxShape(spec));
  return Prepared<HardmaxOp>(view);
}

constexpr OpRow kScanOps[] = {
    {"Hardmax", PrepareHardmax},
    {"CumSum", PrepareCumSum},
    {"ArgMax", PrepareArg},
    {"ArgMin", PrepareArg},
};

}  // namespace

std::span<const OpRow> ScanOps() { return kScanOps; }

// TopK: the largest or smallest elements of each line, sorted, and their indices.

namespace {

// Lines are sorted through lists of indices. There are at most this many groups of lines, each with
// its own list.
constexpr int64_t kMaxGroups = 16;

// The indices go to the operator's second output or, if that is unused, to the statistic.
template <typename T>
class TopKOp final : public PreparedOp {
 public:
  explicit TopKOp(const TopKShape& shape)
      : view_(shape.view),
        chosen_(shape.chosen),
        lines_(shape.lines()),
        groups_(std::min(kMaxGroups, lines_)),
        has_statistic_(shape.has_statistic),
        is_largest_(shape.is_largest) {}
  OpWorkspace workspace() const override {
    return {groups_ * view_.size * static_cast<int64_t>(sizeof(int64_t)), 0};
  }

  void Forward(const ForwardCall& call) override {
    const auto* x = static_cast<const T*>(call.inputs[0]);
    auto* values = static_cast<T*>(call.outputs[0]);
    void* list = has_statistic_            ? call.statistic
                 : call.outputs.size() > 1 ? call.outputs[1]
                                           : nullptr;
    ParallelFor(groups_, 1, [=, this](int64_t begin, int64_t end) {
      for (int64_t group = begin; group < end; ++group) {
        int64_t* order = static_cast<int64_t*>(call.workspace) + group * view_.size;
        const int64_t last = lines_ * (group + 1) / groups_;
        for (int64_t line = lines_ * group / groups_; line < last; ++line) {
          Choose(line, x, order, values, static_cast<int64_t*>(list));
        }
      }
    });
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const auto* g = static_cast<const float*>(call.output_gradients[0]);
    const auto* list =
        static_cast<const int64_t*>(has_statistic_ ? call.statistic : call.outputs[1]);
    auto* dx = static_cast<float*>(gradient);
    ZeroBytes(dx, lines_ * view_.size * 4);
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, chosen_));
    ParallelFor(lines_, grain, [=, this](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        for (int64_t k = 0; k < chosen_; ++k) {
          const int64_t from = First(line, chosen_) + k * view_.inner;
          dx[First(line, view_.size) + list[from] * view_.inner] = g[from];
        }
      }
    });
  }

 private:
  int64_t First(int64_t line, int64_t size) const {
    return line / view_.inner * size * view_.inner + line % view_.inner;
  }

  void Choose(int64_t line, const T* x, int64_t* order, T* values, int64_t* list) const {
    const T* row = x + First(line, view_.size);
    std::iota(order, order + view_.size, int64_t{0});
    std::partial_sort(order, order + chosen_, order + view_.size, [&](int64_t a, int64_t b) {
      const T left = row[a * view_.inner];
      const T right = row[b * view_.inner];
      if (left != right) return is_largest_ ? left > right : left < right;
      return a < b;
    });
    for (int64_t k = 0; k < chosen_; ++k) {
      const int64_t to = First(line, chosen_) + k * view_.inner;
      if (values != nullptr) values[to] = row[order[k] * view_.inner];
      if (list != nullptr) list[to] = order[k];
    }
  }

  AxisView view_;
  int64_t chosen_, lines_, groups_;
  bool has_statistic_, is_largest_;
};

Result<std::unique_ptr<PreparedOp>> PrepareTopK(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const TopKShape shape, ReadTopKShape(spec));
  if (spec.input(0).type == ElementType::kInt32) return Prepared<TopKOp<int32_t>>(shape);
  if (spec.input(0).type == ElementType::kInt64) return Prepared<TopKOp<int64_t>>(shape);
  return Prepared<TopKOp<float>>(shape);
}

constexpr OpRow kTopKOps[] = {{"TopK", PrepareTopK}};

}  // namespace

std::span<const OpRow> TopKOps() { return kTopKOps; }

}  // namespace ckplan::cpu
