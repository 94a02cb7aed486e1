// Operators that copy each element of the input to one or more places of the output: transposes,
// slices, blocks, repetitions, and views that a graph keeps as nodes.
#include <vector>

#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/reduce.h"
#include "lib/executor/cuda/registry.h"
#include "lib/executor/cuda/strided_copy.h"
#include "lib/problem/ops/move.h"

namespace ckplan::cuda {

namespace {

// Each output element is an input element; no input element occurs twice.
class MoveOp final : public PreparedOp {
 public:
  MoveOp(const OpSpec& spec, Device& device, StridedCopy forward, StridedCopy backward)
      : device_(device),
        forward_(std::move(forward)),
        backward_(std::move(backward)),
        input_bytes_(spec.input(0).bytes()),
        leaves_out_(spec.output(0).elements() < spec.input(0).elements()) {}

  void Forward(const ForwardCall& call) override {
    forward_.Run(device_, call.inputs[0], call.outputs[0]);
  }
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    if (leaves_out_) device_.Zero(gradient, input_bytes_);
    backward_.Run(device_, call.output_gradients[0], gradient);
  }

 private:
  Device& device_;
  StridedCopy forward_, backward_;
  int64_t input_bytes_;
  bool leaves_out_;
};

constexpr std::string_view kTooManyAxes = "it moves more axes than its kernel supports";

Result<std::unique_ptr<PreparedOp>> PrepareMove(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const MoveShape shape, ReadMoveShape(spec));
  StridedCopy forward(shape.dims, {spec.input(0).type, shape.strides, shape.base},
                      {spec.output(0).type, RowMajorStrides(shape.dims), 0});
  StridedCopy backward;
  if (spec.input(0).has_gradient) backward = forward.Reversed();
  if (!forward.fits() || !backward.fits()) return Unsupported(spec, kTooManyAxes);
  return Prepared<MoveOp>(spec, device, std::move(forward), std::move(backward));
}

// ---- Repetitions --------------------------------------------------------------------------------

// Sums the gradients of all repetitions of each input element.
class RepeatGradient {
 public:
  RepeatGradient() = default;
  // `layout` describes the input, with strides of 0 for repetitions, and the output.
  explicit RepeatGradient(const Layout& layout) {
    Layout kept, repeated;
    kept.strides.resize(1);
    repeated.strides.resize(1);
    for (size_t axis = 0; axis < layout.dims.size(); ++axis) {
      Layout& own = layout.strides[0][axis] == 0 ? repeated : kept;
      own.dims.push_back(layout.dims[axis]);
      own.strides[0].push_back(layout.strides[1][axis]);
    }
    kept = Collapse(kept.dims, kept.strides);
    repeated = Collapse(repeated.dims, repeated.strides);
    kept_ = DeviceLayout<1>(kept);
    repeated_ = DeviceLayout<1>(repeated);
    shape_ = ReduceShape::Of(kept.count(), repeated.count(), layout.strides[0].back() != 0);
  }

  int64_t workspace() const { return shape_.workspace<float>(); }

  void Run(Device& device, FloatsIn g, FloatsOut dx, void* workspace) const {
    const DeviceLayout<1> kept = kept_;
    const DeviceLayout<1> repeated = repeated_;
    Reduce(
        device, shape_, 0.0F,
        [=] CKPLAN_KERNEL(int64_t result, int64_t i) {
          return g[kept.Find(result)[0] + repeated.Find(i)[0]];
        },
        SumOf(), [=] CKPLAN_KERNEL(int64_t result, float sum) { dx.Set(result, sum); }, workspace);
  }

 private:
  DeviceLayout<1> kept_, repeated_;
  ReduceShape shape_;
};

// Each input element is repeated along axes of stride 0; the repetitions' gradients are summed.
class RepeatOp final : public PreparedOp {
 public:
  RepeatOp(const OpSpec& spec, Device& device, StridedCopy forward, StridedCopy backward,
           const Layout& layout)
      : device_(device),
        forward_(std::move(forward)),
        backward_(std::move(backward)),
        x_type_(spec.input(0).type),
        y_type_(spec.output(0).type),
        input_bytes_(spec.input(0).bytes()),
        is_whole_(spec.input(0).elements() == spec.output(0).elements()),
        is_empty_(spec.output(0).elements() == 0) {
    if (spec.input(0).has_gradient && !is_whole_ && !is_empty_) gradient_ = RepeatGradient(layout);
  }
  OpWorkspace workspace() const override { return {0, gradient_.workspace()}; }

  void Forward(const ForwardCall& call) override {
    forward_.Run(device_, call.inputs[0], call.outputs[0]);
  }
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const void* g = call.output_gradients[0];
    if (is_empty_) return device_.Zero(gradient, input_bytes_);
    if (is_whole_) return backward_.Run(device_, g, gradient);
    gradient_.Run(device_, FloatsIn(g, y_type_), FloatsOut(gradient, x_type_), call.workspace);
  }

 private:
  Device& device_;
  StridedCopy forward_, backward_;
  RepeatGradient gradient_;
  ElementType x_type_, y_type_;
  int64_t input_bytes_;
  bool is_whole_, is_empty_;
};

Result<std::unique_ptr<PreparedOp>> PrepareRepeat(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const MoveShape shape, ReadRepeatShape(spec));
  const Dims to_strides = RowMajorStrides(shape.dims);
  StridedCopy forward(shape.dims, {spec.input(0).type, shape.strides, 0},
                      {spec.output(0).type, to_strides, 0});
  StridedCopy backward({spec.input(0).elements()}, {spec.output(0).type, {1}, 0},
                       {spec.input(0).type, {1}, 0});
  const Layout layout = Collapse(shape.dims, {shape.strides, to_strides});
  if (!forward.fits() || !FitsDevice(layout)) return Unsupported(spec, kTooManyAxes);
  return Prepared<RepeatOp>(spec, device, std::move(forward), std::move(backward), layout);
}

constexpr OpRow kMoveOps[] = {
    {"Identity", PrepareMove}, {"Reshape", PrepareMove},      {"Flatten", PrepareMove},
    {"Squeeze", PrepareMove},  {"Unsqueeze", PrepareMove},    {"Transpose", PrepareMove},
    {"Slice", PrepareMove},    {"DepthToSpace", PrepareMove}, {"SpaceToDepth", PrepareMove},
    {"Expand", PrepareRepeat}, {"Tile", PrepareRepeat},
};

}  // namespace

std::span<const OpRow> MoveOps() { return kMoveOps; }

// Operators that concatenate tensors along an axis, or split them.

namespace {

// A part's position within each row of the whole. A row is the whole from the axis on.
struct Part {
  int64_t rows = 1;
  int64_t row_size = 0;             // Size of a row of the whole, in elements.
  int64_t begin = 0, size = 0;      // Range of the part within a row, in elements.
  ElementType part_type{}, type{};  // Type of the part, type of the whole.

  StridedCopy Insertion() const {  // Copies the part into the whole.
    return StridedCopy({rows, size}, {part_type, {size, 1}, 0}, {type, {row_size, 1}, begin});
  }
};

std::vector<Part> PartsOf(const JoinShape& shape, ElementType type,
                          const std::vector<Operand>& operands) {
  std::vector<Part> parts;
  for (size_t i = 0; i < operands.size(); ++i) {
    parts.push_back(
        {shape.rows, shape.row_size, shape.begin[i], shape.size[i], operands[i].type, type});
  }
  return parts;
}

std::vector<StridedCopy> Insertions(const std::vector<Part>& parts) {
  std::vector<StridedCopy> copies;
  for (const Part& part : parts) copies.push_back(part.Insertion());
  return copies;
}

std::vector<StridedCopy> Extractions(const std::vector<Part>& parts) {
  std::vector<StridedCopy> copies;
  for (const Part& part : parts) copies.push_back(part.Insertion().Reversed());
  return copies;
}

class ConcatOp final : public PreparedOp {
 public:
  ConcatOp(Device& device, const std::vector<Part>& parts)
      : device_(device), insert_(Insertions(parts)), extract_(Extractions(parts)) {}

  void Forward(const ForwardCall& call) override {
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      insert_[i].Run(device_, call.inputs[i], call.outputs[0]);
    }
  }
  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    extract_[position].Run(device_, call.output_gradients[0], gradient);
  }

 private:
  Device& device_;
  std::vector<StridedCopy> insert_, extract_;
};

class SplitOp final : public PreparedOp {
 public:
  SplitOp(Device& device, const std::vector<Part>& parts, int64_t input_bytes)
      : device_(device),
        insert_(Insertions(parts)),
        extract_(Extractions(parts)),
        input_bytes_(input_bytes) {}

  void Forward(const ForwardCall& call) override {
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      if (call.outputs[i] != nullptr) extract_[i].Run(device_, call.inputs[0], call.outputs[i]);
    }
  }
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    bool lacks_some = false;
    for (const void* g : call.output_gradients) lacks_some = lacks_some || g == nullptr;
    if (lacks_some) device_.Zero(gradient, input_bytes_);
    for (size_t i = 0; i < call.output_gradients.size(); ++i) {
      if (call.output_gradients[i] != nullptr) {
        insert_[i].Run(device_, call.output_gradients[i], gradient);
      }
    }
  }

 private:
  Device& device_;
  std::vector<StridedCopy> insert_, extract_;
  int64_t input_bytes_;
};

Result<std::unique_ptr<PreparedOp>> PrepareConcat(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const JoinShape shape, ReadConcatShape(spec));
  return Prepared<ConcatOp>(device, PartsOf(shape, spec.output(0).type, spec.inputs));
}

Result<std::unique_ptr<PreparedOp>> PrepareSplit(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const JoinShape shape, ReadSplitShape(spec));
  return Prepared<SplitOp>(device, PartsOf(shape, spec.input(0).type, spec.outputs),
                           spec.input(0).bytes());
}

constexpr OpRow kJoinOps[] = {
    {"Concat", PrepareConcat},
    {"Split", PrepareSplit},
};

}  // namespace

std::span<const OpRow> JoinOps() { return kJoinOps; }

}  // namespace ckplan::cuda
