// Operators that put each element of the input in one or more places of the output: transposes,
// slices, blocks, repetitions, and views where a graph keeps them as nodes.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "lib/cpu/families.h"
#include "lib/cpu/reduction.h"
#include "lib/cpu/strided_copy.h"
#include "lib/ops/axes.h"

namespace ckplan::cpu {

namespace {

// Each element of the output is one of the input; none is in two places.
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

// Each element of the input is in several places, as far from each other as the strides of 0 say;
// their gradients are summed.
class RepeatOp final : public PreparedOp {
 public:
  RepeatOp(const OpSpec& spec, const Dims& dims, const Dims& from_strides)
      : copy_(dims, from_strides, 0, RowMajorStrides(dims)),
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

std::unique_ptr<PreparedOp> MakeMove(const OpSpec& spec, const Dims& dims, const Dims& from_strides,
                                     int64_t from_base = 0) {
  return std::make_unique<MoveOp>(
      spec, StridedCopy(dims, from_strides, from_base, RowMajorStrides(dims)));
}

Result<std::unique_ptr<PreparedOp>> PrepareView(const OpSpec& spec) {
  if (spec.input(0).elements() != spec.output(0).elements()) {
    return Unsupported(spec, "its input and output have different numbers of elements");
  }
  return MakeMove(spec, {spec.input(0).elements()}, {1});
}

Result<std::unique_ptr<PreparedOp>> PrepareTranspose(const OpSpec& spec) {
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
  return MakeMove(spec, moved, strides);
}

// ---- Slice --------------------------------------------------------------------------------------

// Where a range of an axis begins, of the bounds that ONNX allows beyond the axis.
int64_t FirstOfSlice(int64_t start, int64_t step, int64_t dim) {
  if (start < 0) start += dim;
  return std::clamp<int64_t>(start, 0, step < 0 ? std::max<int64_t>(0, dim - 1) : dim);
}

Result<std::unique_ptr<PreparedOp>> PrepareSlice(const OpSpec& spec) {
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
  return MakeMove(spec, spec.output(0).dims, strides, base);
}

// ---- Blocks -------------------------------------------------------------------------------------

Result<std::unique_ptr<PreparedOp>> PrepareDepthToSpace(const OpSpec& spec) {
  const Dims& y = spec.output(0).dims;
  const int64_t block = spec.Int("blocksize", 0);
  if (y.size() != 4 || block < 1) return Unsupported(spec, "its input is no batch of images");
  const int64_t height = y[2] / block, width = y[3] / block;
  // The axes of the output: sample, channel, row, row in block, column, column in block.
  const int64_t pixels = height * width;
  const bool is_crd = spec.String("mode", "DCR") == "CRD";
  const int64_t channel = is_crd ? block * block * pixels : pixels;
  const int64_t in_block = is_crd ? pixels : y[1] * pixels;
  return MakeMove(spec, {y[0], y[1], height, block, width, block},
                  {y[1] * block * block * pixels, channel, width, block * in_block, 1, in_block});
}

Result<std::unique_ptr<PreparedOp>> PrepareSpaceToDepth(const OpSpec& spec) {
  const Dims& x = spec.input(0).dims;
  const int64_t block = spec.Int("blocksize", 0);
  if (x.size() != 4 || block < 1) return Unsupported(spec, "its input is no batch of images");
  const int64_t height = x[2] / block, width = x[3] / block;
  const int64_t pixels = x[2] * x[3];
  // The axes of the output: sample, row in block, column in block, channel, row, column.
  return MakeMove(spec, {x[0], block, block, x[1], height, width},
                  {x[1] * pixels, x[3], 1, pixels, block * x[3], block});
}

// ---- Repetitions --------------------------------------------------------------------------------

Result<std::unique_ptr<PreparedOp>> PrepareExpand(const OpSpec& spec) {
  const Dims& y = spec.output(0).dims;
  return std::unique_ptr<PreparedOp>(
      std::make_unique<RepeatOp>(spec, y, BroadcastStrides(spec.input(0).dims, y)));
}

Result<std::unique_ptr<PreparedOp>> PrepareTile(const OpSpec& spec) {
  const Dims& x = spec.input(0).dims;
  const Dims own = RowMajorStrides(x);
  Dims dims, strides;
  for (size_t axis = 0; axis < x.size(); ++axis) {
    dims.push_back(x[axis] == 0 ? 0 : spec.output(0).dims[axis] / x[axis]);
    dims.push_back(x[axis]);
    strides.push_back(0);
    strides.push_back(x[axis] == 1 ? 0 : own[axis]);
  }
  return std::unique_ptr<PreparedOp>(std::make_unique<RepeatOp>(spec, dims, strides));
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

}  // namespace ckplan::cpu
