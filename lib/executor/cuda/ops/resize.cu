// Resize and Upsample, using the interpolation taps of lib/problem/ops/pad_resize.h.
#include <utility>

#include "lib/executor/cuda/families.h"
#include "lib/executor/cuda/separable.h"
#include "lib/problem/ops/pad_resize.h"

namespace ckplan::cuda {

namespace {

class ResizeOp final : public PreparedOp {
 public:
  ResizeOp(const OpSpec& spec, Device& device, const ResizeShape& shape, SeparableMap map,
           SeparableMap transposed)
      : device_(device),
        map_(std::move(map)),
        transposed_(std::move(transposed)),
        x_type_(spec.input(0).type),
        y_type_(spec.output(0).type),
        selects_(shape.selects),
        fill_(shape.fill) {}

  void Forward(const ForwardCall& call) override {
    if (selects_) {
      TapFill fill;
      fill.value = fill_;
      map_.Select(device_, call.inputs[0], x_type_, call.outputs[0], y_type_, fill);
    } else {
      map_.Run(device_, call.inputs[0], x_type_, call.outputs[0], y_type_, fill_);
    }
  }
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    transposed_.Run(device_, call.output_gradients[0], y_type_, gradient, x_type_);
  }

 private:
  Device& device_;
  SeparableMap map_, transposed_;
  ElementType x_type_, y_type_;
  bool selects_;
  float fill_;
};

Result<std::unique_ptr<PreparedOp>> PrepareResize(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const ResizeShape shape, ReadResizeShape(spec));
  CKPLAN_ASSIGN_OR_RETURN(SeparableMap map, SeparableMap::Create(spec, device, shape.axes));
  SeparableMap transposed;
  if (spec.input(0).has_gradient) {
    CKPLAN_ASSIGN_OR_RETURN(transposed, SeparableMap::Create(spec, device, Transposed(shape.axes)));
  }
  return Prepared<ResizeOp>(spec, device, shape, std::move(map), std::move(transposed));
}

constexpr OpRow kResizeOps[] = {
    {"Resize", PrepareResize},
    {"Upsample", PrepareResize},
};

}  // namespace

std::span<const OpRow> ResizeOps() { return kResizeOps; }

}  // namespace ckplan::cuda
