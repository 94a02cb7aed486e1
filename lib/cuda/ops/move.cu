// Operators that put each element of the input in one or more places of the output: transposes,
// slices, blocks, repetitions, and views where a graph keeps them as nodes.
#include <algorithm>
#include <numeric>

#include "lib/cuda/families.h"
#include "lib/cuda/reduce.h"
#include "lib/cuda/strided_copy.h"
#include "lib/ops/axes.h"

namespace ckplan::cuda {

namespace {

// Each element of the output is one of the input; none is in two places.
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

constexpr std::string_view kTooManyAxes = "it moves more axes than its kernel walks";

Result<std::unique_ptr<PreparedOp>> MakeMove(const OpSpec& spec, Device& device, const Dims& dims,
                                             const Dims& from_strides, int64_t from_base = 0) {
  StridedCopy forward(dims, {spec.input(0).type, from_strides, from_base},
                      {spec.output(0).type, RowMajorStrides(dims), 0});
  StridedCopy backward;
  if (spec.input(0).has_gradient) backward = forward.Reversed();
  if (!forward.fits() || !backward.fits()) return Unsupported(spec, kTooManyAxes);
  return Prepared<MoveOp>(spec, device, std::move(forward), std::move(backward));
}

// ---- Repetitions --------------------------------------------------------------------------------

// Sums over the places of each element of the input.
class RepeatGradient {
 public:
  RepeatGradient() = default;
  // `layout`: of the input, whose strides of 0 are the repetitions, and of the output.
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

// Each element of the input is in several places, as far from each other as the strides of 0 say;
// their gradients are summed.
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

Result<std::unique_ptr<PreparedOp>> MakeRepeat(const OpSpec& spec, Device& device, const Dims& dims,
                                               const Dims& from_strides) {
  const Dims to_strides = RowMajorStrides(dims);
  StridedCopy forward(dims, {spec.input(0).type, from_strides, 0},
                      {spec.output(0).type, to_strides, 0});
  StridedCopy backward({spec.input(0).elements()}, {spec.output(0).type, {1}, 0},
                       {spec.input(0).type, {1}, 0});
  const Layout layout = Collapse(dims, {from_strides, to_strides});
  if (!forward.fits() || !FitsDevice(layout)) return Unsupported(spec, kTooManyAxes);
  return Prepared<RepeatOp>(spec, device, std::move(forward), std::move(backward), layout);
}

Result<std::unique_ptr<PreparedOp>> PrepareExpand(const OpSpec& spec, Device& device) {
  const Dims& y = spec.output(0).dims;
  return MakeRepeat(spec, device, y, BroadcastStrides(spec.input(0).dims, y));
}

Result<std::unique_ptr<PreparedOp>> PrepareTile(const OpSpec& spec, Device& device) {
  const Dims& x = spec.input(0).dims;
  const Dims own = RowMajorStrides(x);
  Dims dims, strides;
  for (size_t axis = 0; axis < x.size(); ++axis) {
    dims.push_back(x[axis] == 0 ? 0 : spec.output(0).dims[axis] / x[axis]);
    dims.push_back(x[axis]);
    strides.push_back(0);
    strides.push_back(x[axis] == 1 ? 0 : own[axis]);
  }
  return MakeRepeat(spec, device, dims, strides);
}

// ---- Views, transposes --------------------------------------------------------------------------

Result<std::unique_ptr<PreparedOp>> PrepareView(const OpSpec& spec, Device& device) {
  if (spec.input(0).elements() != spec.output(0).elements()) {
    return Unsupported(spec, "its input and output have different numbers of elements");
  }
  return MakeMove(spec, device, {spec.input(0).elements()}, {1});
}

Result<std::unique_ptr<PreparedOp>> PrepareTranspose(const OpSpec& spec, Device& device) {
  const Dims& dims = spec.input(0).dims;
  Dims perm = spec.Ints("perm");
  if (perm.empty()) {
    for (size_t axis = dims.size(); axis-- > 0;) perm.push_back(static_cast<int64_t>(axis));
  }
  const Dims own = RowMajorStrides(dims);
  Dims moved, strides;
  for (const int64_t from : perm) {
    CKPLAN_ASSIGN_OR_RETURN(const size_t axis, NormalAxis(spec, from, dims.size()));
    moved.push_back(dims[axis]);
    strides.push_back(own[axis]);
  }
  if (moved != spec.output(0).dims) return Unsupported(spec, "its perm names no order of its axes");
  return MakeMove(spec, device, moved, strides);
}

// ---- Slice --------------------------------------------------------------------------------------

// Where a range of an axis begins, of the bounds that ONNX allows beyond the axis.
int64_t FirstOfSlice(int64_t start, int64_t step, int64_t dim) {
  if (start < 0) start += dim;
  return std::clamp<int64_t>(start, 0, step < 0 ? std::max<int64_t>(0, dim - 1) : dim);
}

Result<std::unique_ptr<PreparedOp>> PrepareSlice(const OpSpec& spec, Device& device) {
  const Dims& dims = spec.input(0).dims;
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<Dims> starts, KnownInts(spec, 1, "starts"));
  CKPLAN_ASSIGN_OR_RETURN(std::optional<Dims> axes, KnownInts(spec, 3, "axes"));
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<Dims> steps, KnownInts(spec, 4, "steps"));
  if (!starts.has_value()) return Unsupported(spec, "it has no starts");
  if (!axes.has_value()) {
    axes.emplace(starts->size());
    std::iota(axes->begin(), axes->end(), int64_t{0});
  }
  if (axes->size() != starts->size() || (steps.has_value() && steps->size() != starts->size())) {
    return Unsupported(spec, "its starts, axes and steps are not as many");
  }
  Dims strides = RowMajorStrides(dims);
  int64_t base = 0;
  for (size_t i = 0; i < axes->size(); ++i) {
    CKPLAN_ASSIGN_OR_RETURN(const size_t axis, NormalAxis(spec, (*axes)[i], dims.size()));
    const int64_t step = steps.has_value() ? (*steps)[i] : 1;
    base += FirstOfSlice((*starts)[i], step, dims[axis]) * strides[axis];
    // A longer step takes one element alone, and is not multiplied.
    strides[axis] *= std::clamp<int64_t>(step, -std::max<int64_t>(1, dims[axis]),
                                         std::max<int64_t>(1, dims[axis]));
  }
  return MakeMove(spec, device, spec.output(0).dims, strides, base);
}

// ---- Blocks -------------------------------------------------------------------------------------

Result<std::unique_ptr<PreparedOp>> PrepareDepthToSpace(const OpSpec& spec, Device& device) {
  const Dims& y = spec.output(0).dims;
  const int64_t block = spec.Int("blocksize", 0);
  if (y.size() != 4 || block < 1) return Unsupported(spec, "its input is no batch of images");
  const int64_t height = y[2] / block, width = y[3] / block;
  // The axes of the output: sample, channel, row, row in block, column, column in block.
  const int64_t pixels = height * width;
  const bool is_crd = spec.String("mode", "DCR") == "CRD";
  const int64_t channel = is_crd ? block * block * pixels : pixels;
  const int64_t in_block = is_crd ? pixels : y[1] * pixels;
  return MakeMove(spec, device, {y[0], y[1], height, block, width, block},
                  {y[1] * block * block * pixels, channel, width, block * in_block, 1, in_block});
}

Result<std::unique_ptr<PreparedOp>> PrepareSpaceToDepth(const OpSpec& spec, Device& device) {
  const Dims& x = spec.input(0).dims;
  const int64_t block = spec.Int("blocksize", 0);
  if (x.size() != 4 || block < 1) return Unsupported(spec, "its input is no batch of images");
  const int64_t height = x[2] / block, width = x[3] / block;
  const int64_t pixels = x[2] * x[3];
  // The axes of the output: sample, row in block, column in block, channel, row, column.
  return MakeMove(spec, device, {x[0], block, block, x[1], height, width},
                  {x[1] * pixels, x[3], 1, pixels, block * x[3], block});
}

constexpr OpRow kRows[] = {
    {"Identity", PrepareView},
    {"Reshape", PrepareView},
    {"Flatten", PrepareView},
    {"Squeeze", PrepareView},
    {"Unsqueeze", PrepareView},
    {"Transpose", PrepareTranspose},
    {"Slice", PrepareSlice, true, "starts and steps must be known before the step"},
    {"DepthToSpace", PrepareDepthToSpace},
    {"SpaceToDepth", PrepareSpaceToDepth},
    {"Expand", PrepareExpand},
    {"Tile", PrepareTile},
};

}  // namespace

std::span<const OpRow> MoveOps() { return kRows; }

}  // namespace ckplan::cuda
