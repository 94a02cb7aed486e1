// ReverseSequence: the first elements of each sequence in the opposite order, the rest as they are.
#include <algorithm>

#include "lib/cpu/families.h"
#include "lib/cpu/strided_copy.h"
#include "lib/ops/axes.h"

namespace ckplan::cpu {

namespace {

// Two of the first axes are those of the sequences and of time; what lies behind them is copied in
// one piece. Twice reversed is as before: the gradient takes the same way.
class ReverseSequenceOp final : public PreparedOp {
 public:
  ReverseSequenceOp(const OpSpec& spec, bool is_time_first)
      : outer_(spec.input(0).dims[0]),
        middle_(spec.input(0).dims[1]),
        row_bytes_(spec.input(0).bytes() / std::max<int64_t>(1, outer_ * middle_)),
        is_time_first_(is_time_first) {}

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
    ParallelFor(outer_ * middle_, grain, [=, this](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t time = is_time_first_ ? row / middle_ : row % middle_;
        const int64_t sequence = is_time_first_ ? row % middle_ : row / middle_;
        const int64_t most = is_time_first_ ? outer_ : middle_;
        const int64_t length =
            std::clamp<int64_t>(static_cast<const int64_t*>(lengths)[sequence], 0, most);
        const int64_t source = time < length ? length - 1 - time : time;
        const int64_t at =
            is_time_first_ ? source * middle_ + sequence : sequence * middle_ + source;
        std::memcpy(static_cast<char*>(to) + row * row_bytes_,
                    static_cast<const char*>(from) + at * row_bytes_,
                    static_cast<size_t>(row_bytes_));
      }
    });
  }

  int64_t outer_, middle_, row_bytes_;
  bool is_time_first_;
};

Result<std::unique_ptr<PreparedOp>> PrepareReverseSequence(const OpSpec& spec) {
  const int64_t time = spec.Int("time_axis", 0);
  const int64_t batch = spec.Int("batch_axis", 1);
  const bool is_first_two = (time == 0 && batch == 1) || (time == 1 && batch == 0);
  if (spec.input(0).dims.size() < 2 || !is_first_two) {
    return Unsupported(spec, "its batch and time axes are not the first two");
  }
  return std::unique_ptr<PreparedOp>(std::make_unique<ReverseSequenceOp>(spec, time == 0));
}

constexpr OpRow kRows[] = {{"ReverseSequence", PrepareReverseSequence}};

}  // namespace

std::span<const OpRow> ReverseOps() { return kRows; }

}  // namespace ckplan::cpu
