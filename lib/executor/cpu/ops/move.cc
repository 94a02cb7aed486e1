// Operators that copy each element of the input to one or more places of the output: transposes,
// slices, blocks, repetitions, and views that a graph keeps as nodes.
#include "lib/problem/ops/move.h"

#include "lib/executor/cpu/families.h"
#include "lib/executor/cpu/reduction.h"
#include "lib/executor/cpu/strided_copy.h"

namespace ckplan::cpu {

namespace {

// Each element of the output is an element of the input; no input element occurs twice.
class MoveOp final : public PreparedOp {
 public:
  MoveOp(const OpSpec& spec, StridedCopy copy)
      : forward_(std::move(copy)),
        backward_(forward_.Reversed()),
        element_bytes_(SizeOf(spec.output(0).type)),
        input_bytes_(spec.input(0).bytes()),
        leaves_out_(spec.output(0).elements() < spec.input(0).elements()) {}

  void Forward(const ForwardCall& call) override {
    forward_.Run(call.inputs[0], call.outputs[0], element_bytes_);
  }
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    if (leaves_out_) ZeroBytes(gradient, input_bytes_);
    backward_.Run(call.output_gradients[0], gradient, element_bytes_);
  }

 private:
  StridedCopy forward_, backward_;
  int64_t element_bytes_, input_bytes_;
  bool leaves_out_;
};

// Each element of the input is repeated along the axes of stride 0; the gradients of the
// repetitions are summed.
class RepeatOp final : public PreparedOp {
 public:
  RepeatOp(const OpSpec& spec, const MoveShape& shape)
      : copy_(shape.dims, shape.strides, 0, RowMajorStrides(shape.dims)),
        element_bytes_(SizeOf(spec.output(0).type)),
        input_bytes_(spec.input(0).bytes()),
        is_whole_(spec.input(0).elements() == spec.output(0).elements()) {
    if (spec.input(0).has_gradient && !is_whole_) reduction_ = Reduction(copy_.layout(), 0);
  }
  OpWorkspace workspace() const override { return {0, reduction_.workspace()}; }

  void Forward(const ForwardCall& call) override {
    copy_.Run(call.inputs[0], call.outputs[0], element_bytes_);
  }
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const auto* g = static_cast<const float*>(call.output_gradients[0]);
    if (is_whole_) return CopyBytes(gradient, g, input_bytes_);
    reduction_.Run<SumOf>(static_cast<float*>(gradient), call.workspace,
                          [g](const int64_t* at, int64_t, float*) { return g + at[1]; });
  }

 private:
  StridedCopy copy_;
  Reduction reduction_;
  int64_t element_bytes_, input_bytes_;
  bool is_whole_;
};

Result<std::unique_ptr<PreparedOp>> PrepareMove(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const MoveShape shape, ReadMoveShape(spec));
  return Prepared<MoveOp>(
      spec, StridedCopy(shape.dims, shape.strides, shape.base, RowMajorStrides(shape.dims)));
}

Result<std::unique_ptr<PreparedOp>> PrepareRepeat(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const MoveShape shape, ReadRepeatShape(spec));
  return Prepared<RepeatOp>(spec, shape);
}

constexpr OpRow kMoveOps[] = {
    {"Identity", PrepareMove}, {"Reshape", PrepareMove},      {"Flatten", PrepareMove},
    {"Squeeze", PrepareMove},  {"Unsqueeze", PrepareMove},    {"Transpose", PrepareMove},
    {"Slice", PrepareMove},    {"DepthToSpace", PrepareMove}, {"SpaceToDepth", PrepareMove},
    {"Expand", PrepareRepeat}, {"Tile", PrepareRepeat},
};

}  // namespace

std::span<const OpRow> MoveOps() { return kMoveOps; }

}  // namespace ckplan::cpu
