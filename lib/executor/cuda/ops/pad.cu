// Pad in all its modes, and CenterCropPad, using the taps of lib/problem/ops/pad_resize.h.
#include <utility>

#include "lib/executor/cuda/families.h"
#include "lib/executor/cuda/separable.h"
#include "lib/problem/ops/pad_resize.h"

namespace ckplan::cuda {

namespace {

class PadOp final : public PreparedOp {
 public:
  PadOp(const OpSpec& spec, Device& device, const PadShape& shape, SeparableMap map,
        SeparableMap transposed)
      : device_(device),
        map_(std::move(map)),
        transposed_(std::move(transposed)),
        x_type_(spec.input(0).type),
        y_type_(spec.output(0).type),
        has_value_(shape.has_value_input) {
    if (has_value_) {
      fill_.type = spec.input(2).type;
    } else {
      fill_.value = shape.value;
    }
  }

  void Forward(const ForwardCall& call) override {
    TapFill fill = fill_;
    if (has_value_) fill.data = call.inputs[2];
    map_.Select(device_, call.inputs[0], x_type_, call.outputs[0], y_type_, fill);
  }
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    transposed_.Run(device_, call.output_gradients[0], y_type_, gradient, x_type_);
  }

 private:
  Device& device_;
  SeparableMap map_, transposed_;
  ElementType x_type_, y_type_;
  bool has_value_;
  TapFill fill_;
};

Result<std::unique_ptr<PreparedOp>> PreparePad(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const PadShape shape, ReadPadShape(spec));
  CKPLAN_ASSIGN_OR_RETURN(SeparableMap map, SeparableMap::Create(spec, device, shape.axes));
  SeparableMap transposed;
  if (spec.input(0).has_gradient) {
    CKPLAN_ASSIGN_OR_RETURN(transposed, SeparableMap::Create(spec, device, Transposed(shape.axes)));
  }
  return Prepared<PadOp>(spec, device, shape, std::move(map), std::move(transposed));
}

constexpr OpRow kPadOps[] = {
    {"Pad", PreparePad},
    {"CenterCropPad", PreparePad},
};

}  // namespace

std::span<const OpRow> PadOps() { return kPadOps; }

}  // namespace ckplan::cuda
