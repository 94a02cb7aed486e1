// Pad in all its modes, and CenterCropPad, using the taps of lib/problem/ops/pad_resize.h.
#include "lib/executor/cpu/families.h"
#include "lib/executor/cpu/separable.h"
#include "lib/problem/ops/pad_resize.h"

namespace ckplan::cpu {

namespace {

class PadOp final : public PreparedOp {
 public:
  PadOp(const OpSpec& spec, const PadShape& shape)
      : map_(shape.axes),
        element_bytes_(SizeOf(spec.input(0).type)),
        has_value_(shape.has_value_input),
        value_(shape.value) {
    if (spec.input(0).has_gradient) transposed_ = map_.Transposed();
  }

  void Forward(const ForwardCall& call) override {
    const int64_t zero = 0;
    const void* fill = &zero;
    if (has_value_ && call.inputs[2] != nullptr) fill = call.inputs[2];
    if (!has_value_ && element_bytes_ == 4) fill = &value_;
    map_.Select(call.inputs[0], call.outputs[0], element_bytes_, fill);
  }
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    transposed_.Run(static_cast<const float*>(call.output_gradients[0]),
                    static_cast<float*>(gradient));
  }

 private:
  SeparableMap map_, transposed_;
  int64_t element_bytes_;
  bool has_value_;
  float value_;
};

Result<std::unique_ptr<PreparedOp>> PreparePad(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const PadShape shape, ReadPadShape(spec));
  return Prepared<PadOp>(spec, shape);
}

constexpr OpRow kPadOps[] = {
    {"Pad", PreparePad},
    {"CenterCropPad", PreparePad},
};

}  // namespace

std::span<const OpRow> PadOps() { return kPadOps; }

}  // namespace ckplan::cpu
