// Reductions along axes.
#include "lib/problem/ops/reduce.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "lib/executor/cpu/reduction.h"
#include "lib/executor/cpu/registry.h"
#include "lib/executor/cpu/vector_math.h"
#include "lib/executor/scalar/integers.h"

namespace ckplan::cpu {

namespace {

// The parts of a reduction: a function of each value, a function of the combined value, and the
// gradient of one input element. n is the number of elements per result.
struct SumKind {
  using Combiner = SumOf;
  static constexpr bool kReadsX = false, kReadsY = false;
  static float Before(float x) { return x; }
  static double After(double sum, double) { return sum; }
  static float Slope(float, float, float) { return 1; }
};
struct MeanKind : SumKind {
  static double After(double sum, double n) { return sum / n; }
  static float Slope(float, float, float n) { return 1 / n; }
};
struct SumSquareKind : SumKind {
  static constexpr bool kReadsX = true;
  static float Before(float x) { return x * x; }
  static float Slope(float x, float, float) { return 2 * x; }
};
struct L1Kind : SumKind {
  static constexpr bool kReadsX = true;
  static float Before(float x) { return std::abs(x); }
  static float Slope(float x, float, float) { return x > 0 ? 1.0F : x < 0 ? -1.0F : 0.0F; }
};
struct L2Kind : SumKind {
  static constexpr bool kReadsX = true, kReadsY = true;
  static float Before(float x) { return x * x; }
  static double After(double sum, double) { return std::sqrt(sum); }
  static float Slope(float x, float y, float) { return y > 0 ? x / y : 0.0F; }
};
struct LogSumKind : SumKind {
  static constexpr bool kReadsY = true;
  static double After(double sum, double) { return std::log(sum); }
  static float Slope(float, float y, float) { return Exp(-y); }
};

class ReduceBase : public PreparedOp {
 public:
  explicit ReduceBase(const ReduceShape& shape)
      : reduction_(shape.layout, 1),
        results_(shape.results),
        ratio_(static_cast<double>(shape.elements) /
               static_cast<double>(std::max<int64_t>(results_, 1))) {}
  OpWorkspace workspace() const override { return {reduction_.workspace(), 0}; }

 protected:
  const Layout& layout() const { return reduction_.layout(); }

  // Computes dx = g * slope(i, offset of the result, index of x) for each element.
  template <typename Slope>
  void Spread(const BackwardCall& call, void* gradient, const Slope& slope) const {
    const auto* g = static_cast<const float*>(call.output_gradients[0]);
    auto* dx = static_cast<float*>(gradient);
    const int64_t stride = layout().inner_stride(1);
    ForRuns(layout(), [=](const int64_t* at, int64_t length) {
      for (int64_t i = 0; i < length; ++i) {
        const int64_t result = at[1] + i * stride;
        dx[at[0] + i] = g[result] * slope(at[0] + i, result);
      }
    });
  }

  Reduction reduction_;
  int64_t results_;
  double ratio_;  // Elements per result.
};

template <typename Kind>
class ReduceOp final : public ReduceBase {
 public:
  using ReduceBase::ReduceBase;

  void Forward(const ForwardCall& call) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    const auto segment = [x](const int64_t* at, int64_t length, float* buffer) -> const float* {
      for (int64_t i = 0; i < length; ++i) buffer[i] = Kind::Before(x[at[0] + i]);
      return buffer;
    };
    reduction_.Run<typename Kind::Combiner>(
        static_cast<float*>(call.outputs[0]), call.workspace, segment,
        [this](double sum, int64_t) { return static_cast<float>(Kind::After(sum, ratio_)); });
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    const auto* y = static_cast<const float*>(call.outputs[0]);
    const auto n = static_cast<float>(ratio_);
    Spread(call, gradient, [x, y, n](int64_t i, int64_t result) {
      return Kind::Slope(Kind::kReadsX ? x[i] : 0.0F, Kind::kReadsY ? y[result] : 0.0F, n);
    });
  }
};

// Computes log(sum(e^x)), subtracting the maximum from each exponent.
class ReduceLogSumExp final : public ReduceBase {
 public:
  using ReduceBase::ReduceBase;

  void Forward(const ForwardCall& call) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    auto* y = static_cast<float*>(call.outputs[0]);
    const int64_t stride = layout().inner_stride(1);
    reduction_.Run<MaxOf>(y, call.workspace,
                          [x](const int64_t* at, int64_t, float*) { return x + at[0]; });
    const auto segment = [=](const int64_t* at, int64_t length, float* buffer) -> const float* {
      for (int64_t i = 0; i < length; ++i) {
        buffer[i] = Exp(x[at[0] + i] - Finite(y[at[1] + i * stride]));
      }
      return buffer;
    };
    // Each result overwrites its maximum, which only this result's sum reads.
    reduction_.Run<SumOf>(y, call.workspace, segment, [y](double sum, int64_t i) {
      return static_cast<float>(std::log(sum)) + Finite(y[i]);
    });
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    const auto* y = static_cast<const float*>(call.outputs[0]);
    Spread(call, gradient, [x, y](int64_t i, int64_t result) { return Exp(x[i] - y[result]); });
  }

 private:
  // Replaces an infinite maximum by 0, because infinity minus infinity would be NaN.
  static float Finite(float maximum) { return std::isinf(maximum) ? 0.0F : maximum; }
};

// Equal maxima (or minima) share the gradient. The backward workspace holds their count for each
// result, followed by the reduction's workspace.
template <typename Combiner>
class ReduceExtreme final : public ReduceBase {
 public:
  using ReduceBase::ReduceBase;

  OpWorkspace workspace() const override {
    return {reduction_.workspace(), CountBytes() + reduction_.workspace()};
  }

  void Forward(const ForwardCall& call) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    reduction_.Run<Combiner>(static_cast<float*>(call.outputs[0]), call.workspace,
                             [x](const int64_t* at, int64_t, float*) { return x + at[0]; });
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    const auto* y = static_cast<const float*>(call.outputs[0]);
    auto* counts = static_cast<float*>(call.workspace);
    const int64_t stride = layout().inner_stride(1);
    const auto count = [=](const int64_t* at, int64_t length, float* buffer) -> const float* {
      for (int64_t i = 0; i < length; ++i) {
        buffer[i] = x[at[0] + i] == y[at[1] + i * stride] ? 1.0F : 0.0F;
      }
      return buffer;
    };
    reduction_.Run<SumOf>(counts, static_cast<char*>(call.workspace) + CountBytes(), count);
    Spread(call, gradient, [x, y, counts](int64_t i, int64_t result) {
      return x[i] == y[result] ? 1 / counts[result] : 0.0F;
    });
  }

 private:
  int64_t CountBytes() const { return (results_ * 4 + 7) / 8 * 8; }
};

// An element's gradient is the product of the other elements, which division cannot find if the
// element is 0. The backward workspace holds the products without zeros, the zero counts, and the
// reduction's workspace.
class ReduceProd final : public ReduceBase {
 public:
  using ReduceBase::ReduceBase;

  OpWorkspace workspace() const override {
    return {reduction_.workspace(), results_ * 8 + reduction_.workspace()};
  }

  void Forward(const ForwardCall& call) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    reduction_.Run<ProductOf>(static_cast<float*>(call.outputs[0]), call.workspace,
                              [x](const int64_t* at, int64_t, float*) { return x + at[0]; });
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const auto* x = static_cast<const float*>(call.inputs[0]);
    auto* products = static_cast<float*>(call.workspace);
    float* zeros = products + results_;
    void* rest = static_cast<char*>(call.workspace) + results_ * 8;
    const auto factors = [x](const int64_t* at, int64_t length, float* buffer) -> const float* {
      for (int64_t i = 0; i < length; ++i) buffer[i] = x[at[0] + i] == 0 ? 1 : x[at[0] + i];
      return buffer;
    };
    const auto are_zero = [x](const int64_t* at, int64_t length, float* buffer) -> const float* {
      for (int64_t i = 0; i < length; ++i) buffer[i] = x[at[0] + i] == 0 ? 1.0F : 0.0F;
      return buffer;
    };
    reduction_.Run<ProductOf>(products, rest, factors);
    reduction_.Run<SumOf>(zeros, rest, are_zero);
    Spread(call, gradient, [x, products, zeros](int64_t i, int64_t result) {
      if (x[i] == 0) return zeros[result] == 1 ? products[result] : 0.0F;
      return zeros[result] == 0 ? products[result] / x[i] : 0.0F;
    });
  }
};

// Integer reductions, which occur in shape computations and are small.
template <typename T, typename F>
class ReduceIntegers final : public PreparedOp {
 public:
  explicit ReduceIntegers(const ReduceShape& shape)
      : layout_(shape.layout),
        results_(shape.results),
        ratio_(shape.elements / std::max<int64_t>(results_, 1)) {}

  void Forward(const ForwardCall& call) override {
    const auto* x = static_cast<const T*>(call.inputs[0]);
    auto* y = static_cast<T*>(call.outputs[0]);
    std::fill(y, y + results_, F::template Identity<T>());
    WalkRuns(layout_, 0, layout_.count(), [&](const int64_t* at, int64_t length) {
      for (int64_t i = 0; i < length; ++i) {
        T& result = y[at[1] + i * layout_.inner_stride(1)];
        result = F::Combine(result, x[at[0] + i]);
      }
    });
    for (int64_t i = 0; i < results_; ++i) y[i] = F::After(y[i], static_cast<T>(ratio_));
  }

 private:
  Layout layout_;
  int64_t results_, ratio_;
};

struct IntegerSum {
  template <typename T>
  static T Identity() {
    return 0;
  }
  template <typename T>
  static T Combine(T a, T b) {
    return scalar::WrapAdd(a, b);
  }
  template <typename T>
  static T After(T sum, T) {
    return sum;
  }
};
struct IntegerMean : IntegerSum {
  template <typename T>
  static T After(T sum, T n) {
    return scalar::SafeDiv(sum, n);
  }
};
struct IntegerProduct : IntegerSum {
  template <typename T>
  static T Identity() {
    return 1;
  }
  template <typename T>
  static T Combine(T a, T b) {
    return scalar::WrapMul(a, b);
  }
};
struct IntegerMax : IntegerSum {
  template <typename T>
  static T Identity() {
    return std::numeric_limits<T>::lowest();
  }
  template <typename T>
  static T Combine(T a, T b) {
    return std::max(a, b);
  }
};
struct IntegerMin : IntegerSum {
  template <typename T>
  static T Identity() {
    return std::numeric_limits<T>::max();
  }
  template <typename T>
  static T Combine(T a, T b) {
    return std::min(a, b);
  }
};
struct NoIntegers {};

template <typename Float, typename Integer>
Result<std::unique_ptr<PreparedOp>> PrepareReduce(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const ReduceShape shape, ReadReduceShape(spec));
  if constexpr (!std::is_same_v<Integer, NoIntegers>) {
    if (spec.input(0).type == ElementType::kInt32) {
      return Prepared<ReduceIntegers<int32_t, Integer>>(shape);
    }
    if (spec.input(0).type == ElementType::kInt64) {
      return Prepared<ReduceIntegers<int64_t, Integer>>(shape);
    }
  }
  return Prepared<Float>(shape);
}

constexpr OpRow kReduceOps[] = {
    {"ReduceSum", PrepareReduce<ReduceOp<SumKind>, IntegerSum>},
    {"ReduceMean", PrepareReduce<ReduceOp<MeanKind>, IntegerMean>},
    {"ReduceMax", PrepareReduce<ReduceExtreme<MaxOf>, IntegerMax>},
    {"ReduceMin", PrepareReduce<ReduceExtreme<MinOf>, IntegerMin>},
    {"ReduceProd", PrepareReduce<ReduceProd, IntegerProduct>},
    {"ReduceL1", PrepareReduce<ReduceOp<L1Kind>, NoIntegers>},
    {"ReduceL2", PrepareReduce<ReduceOp<L2Kind>, NoIntegers>},
    {"ReduceSumSquare", PrepareReduce<ReduceOp<SumSquareKind>, NoIntegers>},
    {"ReduceLogSum", PrepareReduce<ReduceOp<LogSumKind>, NoIntegers>},
    {"ReduceLogSumExp", PrepareReduce<ReduceLogSumExp, NoIntegers>},
};

}  // namespace

std::span<const OpRow> ReduceOps() { return kReduceOps; }

}  // namespace ckplan::cpu
