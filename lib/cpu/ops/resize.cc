// Resize and Upsample, by the taps of lib/backend/resize_taps.h.
#include "lib/cpu/families.h"
#include "lib/cpu/separable.h"
#include "lib/ops/resize_taps.h"

namespace ckplan::cpu {

namespace {

class ResizeOp final : public PreparedOp {
 public:
  ResizeOp(const OpSpec& spec, const ResizeTaps& taps)
      : map_(taps.axes),
        element_bytes_(SizeOf(spec.input(0).type)),
        selects_(taps.selects),
        fill_(taps.fill) {
    if (spec.input(0).has_gradient) transposed_ = map_.Transposed();
  }

  void Forward(const ForwardCall& call) override {
    if (selects_) {
      const double none = 0;
      const void* fill = &none;
      if (element_bytes_ == 4) fill = &fill_;
      map_.Select(call.inputs[0], call.outputs[0], element_bytes_, fill);
    } else {
      map_.Run(static_cast<const float*>(call.inputs[0]), static_cast<float*>(call.outputs[0]),
               fill_);
    }
  }
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    transposed_.Run(static_cast<const float*>(call.output_gradients[0]),
                    static_cast<float*>(gradient));
  }

 private:
  SeparableMap map_, transposed_;
  int64_t element_bytes_;
  bool selects_;
  float fill_;
};

Result<std::unique_ptr<PreparedOp>> PrepareResize(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const ResizeTaps taps, ReadResize(spec));
  return std::unique_ptr<PreparedOp>(std::make_unique<ResizeOp>(spec, taps));
}

constexpr OpRow kRows[] = {
    {"Resize", PrepareResize, true, "scales, sizes and regions must be known before the step"},
    {"Upsample", PrepareResize, true, "scales must be known before the step"},
};

}  // namespace

std::span<const OpRow> ResizeOps() { return kRows; }

}  // namespace ckplan::cpu
