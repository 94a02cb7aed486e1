// Resize and Upsample, using the interpolation taps of lib/problem/ops/pad_resize.h.
#include "lib/executor/cpu/families.h"
#include "lib/executor/cpu/separable.h"
#include "lib/problem/ops/pad_resize.h"

namespace ckplan::cpu {

namespace {

class ResizeOp final : public PreparedOp {
 public:
  ResizeOp(const OpSpec& spec, const ResizeShape& shape)
      : map_(shape.axes),
        element_bytes_(SizeOf(spec.input(0).type)),
        selects_(shape.selects),
        fill_(shape.fill) {
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
  CKPLAN_ASSIGN_OR_RETURN(const ResizeShape shape, ReadResizeShape(spec));
  return Prepared<ResizeOp>(spec, shape);
}

constexpr OpRow kResizeOps[] = {
    {"Resize", PrepareResize},
    {"Upsample", PrepareResize},
};

}  // namespace

std::span<const OpRow> ResizeOps() { return kResizeOps; }

}  // namespace ckplan::cpu
