// ReverseSequence: the first elements of each sequence in the opposite order, the rest as they are.
#include <algorithm>

#include "lib/cuda/element_copy.h"
#include "lib/cuda/families.h"
#include "lib/cuda/index.h"
#include "lib/cuda/launch.h"

namespace ckplan::cuda {

namespace {

// Two of the first axes are those of the sequences and of time; what lies behind them is copied in
// one piece. Twice reversed is as before: the gradient takes the same way.
class ReverseSequenceOp final : public PreparedOp {
 public:
  ReverseSequenceOp(const OpSpec& spec, Device& device, bool is_time_first)
      : device_(device),
        outer_(spec.input(0).dims[0]),
        middle_(spec.input(0).dims[1]),
        inner_(spec.input(0).elements() / std::max<int64_t>(1, outer_ * middle_)),
        x_type_(spec.input(0).type),
        y_type_(spec.output(0).type),
        is_time_first_(is_time_first) {}

  void Forward(const ForwardCall& call) override {
    Reverse(call.inputs[1], call.inputs[0], x_type_, call.outputs[0], y_type_);
  }
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    Reverse(call.inputs[1], call.output_gradients[0], y_type_, gradient, x_type_);
  }

  void Reverse(const void* lengths, const void* from, ElementType from_type, void* to,
               ElementType to_type) {
    if (outer_ * middle_ * inner_ == 0) return;
    const int64_t bytes = SizeOf(from_type);
    const int64_t at_once = from_type == to_type ? ElementsAtOnce(inner_, bytes) : 1;
    const ElementCopy copy = from_type == to_type ? ElementCopy(from, to, at_once * bytes)
                                                  : ElementCopy(from, from_type, to, to_type);
    const auto* length_of = static_cast<const int64_t*>(lengths);
    const Divider inner(inner_ / at_once), middles(middle_);
    const int64_t middle = middle_;
    const int64_t most = is_time_first_ ? outer_ : middle_;
    const bool is_time_first = is_time_first_;
    ForEach(device_, outer_ * middle_ * (inner_ / at_once), [=] CKPLAN_KERNEL(int64_t i) {
      int64_t column = i;
      int64_t second = inner.Split(column);
      const int64_t first = middles.Split(second);
      const int64_t time = is_time_first ? first : second;
      const int64_t sequence = is_time_first ? second : first;
      const int64_t length = Max(0, Min(length_of[sequence], most));
      const int64_t source = time < length ? length - 1 - time : time;
      const int64_t row = is_time_first ? source * middle + sequence : sequence * middle + source;
      copy(i, row * inner.divisor() + column);
    });
  }

 private:
  Device& device_;
  int64_t outer_, middle_, inner_;
  ElementType x_type_, y_type_;
  bool is_time_first_;
};

Result<std::unique_ptr<PreparedOp>> PrepareReverseSequence(const OpSpec& spec, Device& device) {
  const int64_t time = spec.Int("time_axis", 0);
  const int64_t batch = spec.Int("batch_axis", 1);
  const bool is_first_two = (time == 0 && batch == 1) || (time == 1 && batch == 0);
  if (spec.input(0).dims.size() < 2 || !is_first_two) {
    return Unsupported(spec, "its batch and time axes are not the first two");
  }
  return Prepared<ReverseSequenceOp>(spec, device, time == 0);
}

constexpr OpRow kRows[] = {{"ReverseSequence", PrepareReverseSequence}};

}  // namespace

std::span<const OpRow> ReverseOps() { return kRows; }

}  // namespace ckplan::cuda
