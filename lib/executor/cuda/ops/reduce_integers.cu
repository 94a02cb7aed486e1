#include <algorithm>
#include <limits>

#include "lib/base/check.h"
#include "lib/executor/cuda/ops/reduce_integers.h"
#include "lib/executor/cuda/reduction.h"
#include "lib/executor/scalar/integers.h"

namespace ckplan::cuda {

namespace {

// Sums and products wrap, and a division by 0 gives 0, as in the CPU backend.
struct IntegerSum {
  template <typename T>
  static T Identity() {
    return 0;
  }
  template <typename T>
  CKPLAN_DEVICE T operator()(T a, T b) const {
    return scalar::WrapAdd(a, b);
  }
  template <typename T>
  CKPLAN_DEVICE static T After(T sum, int64_t) {
    return sum;
  }
};
struct IntegerMean : IntegerSum {
  template <typename T>
  CKPLAN_DEVICE static T After(T sum, int64_t n) {
    return n == 0 ? T{0} : static_cast<T>(static_cast<int64_t>(sum) / n);
  }
};
struct IntegerProduct : IntegerSum {
  template <typename T>
  static T Identity() {
    return 1;
  }
  template <typename T>
  CKPLAN_DEVICE T operator()(T a, T b) const {
    return scalar::WrapMul(a, b);
  }
};
struct IntegerMax : IntegerSum {
  template <typename T>
  static T Identity() {
    return std::numeric_limits<T>::lowest();
  }
  template <typename T>
  CKPLAN_DEVICE T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct IntegerMin : IntegerSum {
  template <typename T>
  static T Identity() {
    return std::numeric_limits<T>::max();
  }
  template <typename T>
  CKPLAN_DEVICE T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};

template <typename T, typename F>
class ReduceIntegersOp final : public PreparedOp {
 public:
  ReduceIntegersOp(Device& device, const Layout& layout) : device_(device), reduction_(layout) {}
  OpWorkspace workspace() const override { return {reduction_.workspace<T>(), 0}; }

  void Forward(const ForwardCall& call) override {
    const auto* x = static_cast<const T*>(call.inputs[0]);
    auto* y = static_cast<T*>(call.outputs[0]);
    const int64_t length = reduction_.length();
    reduction_.Run(
        device_, F::template Identity<T>(),
        [=] CKPLAN_KERNEL(int64_t, int64_t at) { return x[at]; }, F(),
        [=] CKPLAN_KERNEL(int64_t i, T value) { y[i] = F::After(value, length); }, call.workspace);
  }
  void BackwardInput(const BackwardCall&, size_t, void*) override {
    CKPLAN_CHECK(false, "no gradient is asked of an operator that has none");
  }

 private:
  Device& device_;
  Reduction reduction_;
};

template <typename T>
Result<std::unique_ptr<PreparedOp>> PrepareOf(const OpSpec& spec, Device& device,
                                              const Layout& layout, IntegerKind kind) {
  switch (kind) {
    case IntegerKind::kSum:
      return Prepared<ReduceIntegersOp<T, IntegerSum>>(device, layout);
    case IntegerKind::kMean:
      return Prepared<ReduceIntegersOp<T, IntegerMean>>(device, layout);
    case IntegerKind::kProduct:
      return Prepared<ReduceIntegersOp<T, IntegerProduct>>(device, layout);
    case IntegerKind::kMax:
      return Prepared<ReduceIntegersOp<T, IntegerMax>>(device, layout);
    case IntegerKind::kMin:
      return Prepared<ReduceIntegersOp<T, IntegerMin>>(device, layout);
    case IntegerKind::kNone:
      break;
  }
  return Unsupported(spec, "it has no kernel for this element type");
}

}  // namespace

Result<std::unique_ptr<PreparedOp>> PrepareIntegers(const OpSpec& spec, Device& device,
                                                    const Layout& layout, IntegerKind kind) {
  switch (spec.input(0).type) {
    case ElementType::kInt32:
      return PrepareOf<int32_t>(spec, device, layout, kind);
    case ElementType::kInt64:
      return PrepareOf<int64_t>(spec, device, layout, kind);
    default:
      return Unsupported(spec, "it has no kernel for this element type");
  }
}

}  // namespace ckplan::cuda
