// ReverseSequence: reverses the first elements of each sequence and copies the rest.
#include "lib/executor/cuda/element_copy.h"
#include "lib/executor/cuda/families.h"
#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/launch.h"
#include "lib/problem/ops/move.h"

namespace ckplan::cuda {

namespace {

// The first two axes are batch and time, in either order; the axes after them are copied as one
// block. The operator is its own inverse, so backward applies it to the gradient.
class ReverseSequenceOp final : public PreparedOp {
 public:
  ReverseSequenceOp(const OpSpec& spec, Device& device, const ReverseShape& shape)
      : device_(device), shape_(shape), x_type_(spec.input(0).type), y_type_(spec.output(0).type) {}

  void Forward(const ForwardCall& call) override {
    Reverse(call.inputs[1], call.inputs[0], x_type_, call.outputs[0], y_type_);
  }
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    Reverse(call.inputs[1], call.output_gradients[0], y_type_, gradient, x_type_);
  }

  void Reverse(const void* lengths, const void* from, ElementType from_type, void* to,
               ElementType to_type) {
    const int64_t outer = shape_.outer, middle = shape_.middle;
    if (outer * middle * shape_.inner == 0) return;
    const int64_t bytes = SizeOf(from_type);
    const int64_t at_once = from_type == to_type ? ElementsAtOnce(shape_.inner, bytes) : 1;
    const ElementCopy copy = from_type == to_type ? ElementCopy(from, to, at_once * bytes)
                                                  : ElementCopy(from, from_type, to, to_type);
    const auto* length_of = static_cast<const int64_t*>(lengths);
    const Divider inner(shape_.inner / at_once), middles(middle);
    const int64_t longest = shape_.length();
    const bool is_time_first = shape_.is_time_first;
    ForEach(device_, outer * middle * inner.divisor(), [=] CKPLAN_KERNEL(int64_t i) {
      int64_t column = i;
      int64_t second = inner.Split(column);
      const int64_t first = middles.Split(second);
      const int64_t time = is_time_first ? first : second;
      const int64_t sequence = is_time_first ? second : first;
      const int64_t length = Max(0, Min(length_of[sequence], longest));
      const int64_t source = time < length ? length - 1 - time : time;
      const int64_t row = is_time_first ? source * middle + sequence : sequence * middle + source;
      copy(i, row * inner.divisor() + column);
    });
  }

 private:
  Device& device_;
  ReverseShape shape_;
  ElementType x_type_, y_type_;
};

Result<std::unique_ptr<PreparedOp>> PrepareReverseSequence(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const ReverseShape shape, ReadReverseShape(spec));
  return Prepared<ReverseSequenceOp>(spec, device, shape);
}

constexpr OpRow kReverseOps[] = {{"ReverseSequence", PrepareReverseSequence}};

}  // namespace

std::span<const OpRow> ReverseOps() { return kReverseOps; }

}  // namespace ckplan::cuda
