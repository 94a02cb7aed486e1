// ReverseSequence: reverses the first elements of each sequence and copies the rest.
#include <algorithm>

#include "lib/executor/cpu/families.h"
#include "lib/executor/cpu/strided_copy.h"
#include "lib/problem/ops/move.h"

namespace ckplan::cpu {

namespace {

// The first two axes are batch and time, in either order; the axes after them are copied as one
// block. The operator is its own inverse, so backward applies it to the gradient.
class ReverseSequenceOp final : public PreparedOp {
 public:
  ReverseSequenceOp(const OpSpec& spec, const ReverseShape& shape)
      : shape_(shape), row_bytes_(shape.inner * SizeOf(spec.input(0).type)) {}

  void Forward(const ForwardCall& call) override {
    Reverse(call.inputs[1], call.inputs[0], call.outputs[0]);
  }
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    Reverse(call.inputs[1], call.output_gradients[0], gradient);
  }

 private:
  void Reverse(const void* lengths, const void* from, void* to) const {
    if (row_bytes_ == 0) return;
    const int64_t grain = std::max<int64_t>(1, 4 * kGrain / row_bytes_);
    const ReverseShape s = shape_;
    ParallelFor(s.outer * s.middle, grain, [=, this](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t time = s.is_time_first ? row / s.middle : row % s.middle;
        const int64_t sequence = s.is_time_first ? row % s.middle : row / s.middle;
        const int64_t length =
            std::clamp<int64_t>(static_cast<const int64_t*>(lengths)[sequence], 0, s.length());
        const int64_t source = time < length ? length - 1 - time : time;
        const int64_t at =
            s.is_time_first ? source * s.middle + sequence : sequence * s.middle + source;
        std::memcpy(static_cast<char*>(to) + row * row_bytes_,
                    static_cast<const char*>(from) + at * row_bytes_,
                    static_cast<size_t>(row_bytes_));
      }
    });
  }

  ReverseShape shape_;
  int64_t row_bytes_;
};

Result<std::unique_ptr<PreparedOp>> PrepareReverseSequence(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const ReverseShape shape, ReadReverseShape(spec));
  return Prepared<ReverseSequenceOp>(spec, shape);
}

constexpr OpRow kReverseOps[] = {{"ReverseSequence", PrepareReverseSequence}};

}  // namespace

std::span<const OpRow> ReverseOps() { return kReverseOps; }

}  // namespace ckplan::cpu
