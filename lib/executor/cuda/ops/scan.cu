// Cumulative sums of integers along one axis, which positions are computed with. The host computes
// those of floats.
#include <type_traits>

#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/registry.h"
#include "lib/problem/ops/reduce.h"

namespace ckplan::cuda {

namespace {

// Integers wrap, so they are summed as unsigned integers of equal size. One thread adds up a line.
template <typename T>
class CumSumOp final : public PreparedOp {
 public:
  CumSumOp(Device& device, const CumSumShape& shape) : device_(device), shape_(shape) {}

  void Forward(const ForwardCall& call) override {
    using Sum = std::make_unsigned_t<T>;
    const auto* const x = static_cast<const Sum*>(call.inputs[0]);
    auto* const y = static_cast<Sum*>(call.outputs[0]);
    const int64_t size = shape_.view.size;
    const int64_t inner = shape_.view.inner;
    const bool is_exclusive = shape_.is_exclusive;
    const bool is_reverse = shape_.is_reverse;
    ForEach(device_, shape_.view.outer * inner, [=] CKPLAN_KERNEL(int64_t line) {
      const int64_t first = line / inner * inner * size + line % inner;
      Sum sum{};
      for (int64_t k = 0; k < size; ++k) {
        const int64_t at = first + (is_reverse ? size - 1 - k : k) * inner;
        const Sum own = x[at];
        if (is_exclusive) y[at] = sum;
        sum += own;
        if (!is_exclusive) y[at] = sum;
      }
    });
  }

 private:
  Device& device_;
  CumSumShape shape_;
};

Result<std::unique_ptr<PreparedOp>> PrepareCumSum(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const CumSumShape shape, ReadCumSumShape(spec));
  switch (spec.input(0).type) {
    case ElementType::kInt32:
      return Prepared<CumSumOp<int32_t>>(device, shape);
    case ElementType::kInt64:
      return Prepared<CumSumOp<int64_t>>(device, shape);
    default:
      return Unsupported(spec, "its kernel takes only integers");
  }
}

constexpr OpRow kScanOps[] = {{"CumSum", PrepareCumSum, "floats run on the host"}};

}  // namespace

std::span<const OpRow> ScanOps() { return kScanOps; }

}  // namespace ckplan::cuda
