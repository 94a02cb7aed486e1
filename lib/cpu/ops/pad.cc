// Pad in all its modes, and CenterCropPad, by the taps of lib/backend/pad_taps.h.
#include "lib/cpu/families.h"
#include "lib/cpu/separable.h"
#include "lib/ops/pad_taps.h"

namespace ckplan::cpu {

namespace {

class PadOp final : public PreparedOp {
 public:
  PadOp(const OpSpec& spec, const std::vector<AxisTaps>& axes)
      : map_(axes),
        element_bytes_(SizeOf(spec.input(0).type)),
        has_value_(spec.type == "Pad" && spec.input(2).is_present),
        value_(static_cast<float>(spec.Float("value", 0))) {
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
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<AxisTaps> taps, ReadPads(spec));
  return std::unique_ptr<PreparedOp>(std::make_unique<PadOp>(spec, taps));
}

Result<std::unique_ptr<PreparedOp>> PrepareCenterCropPad(const OpSpec& spec) {
  return std::unique_ptr<PreparedOp>(std::make_unique<PadOp>(spec, ReadCenterCropPad(spec)));
}

constexpr OpRow kRows[] = {
    {"Pad", PreparePad, true, "pads must be known before the step"},
    {"CenterCropPad", PrepareCenterCropPad},
};

}  // namespace

std::span<const OpRow> PadOps() { return kRows; }

}  // namespace ckplan::cpu
