#include "lib/problem/ops/move.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_checks.h"

namespace ckplan {

namespace {

Result<Done> RequireLikeTypes(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, 1));
  return RequireType(spec, spec.output(0), "its output", spec.input(0).type);
}

// ---- Views, transposes --------------------------------------------------------------------------

Result<MoveShape> ReadView(const OpSpec& spec) {
  const int64_t elements = spec.input(0).elements();
  CKPLAN_RETURN_IF_ERROR(RequireElements(spec, spec.output(0), "its output", elements));
  return MoveShape{{elements}, {1}};
}

Result<MoveShape> ReadTranspose(const OpSpec& spec) {
  const Dims& dims = spec.input(0).dims;
  Dims perm = spec.Ints("perm");
  if (perm.empty()) {
    for (size_t axis = dims.size(); axis-- > 0;) perm.push_back(static_cast<int64_t>(axis));
  }
  const Dims strides = RowMajorStrides(dims);
  std::vector<bool> is_taken(dims.size(), false);
  MoveShape shape;
  for (const int64_t from : perm) {
    CKPLAN_ASSIGN_OR_RETURN(const size_t axis, NormalAxis(spec, from, dims.size()));
    if (is_taken[axis]) {
      return InvalidOp(spec, fmt::format("attribute perm names axis {} twice", axis));
    }
    is_taken[axis] = true;
    shape.dims.push_back(dims[axis]);
    shape.strides.push_back(strides[axis]);
  }
  if (perm.size() != dims.size()) {
    return InvalidOp(spec, fmt::format("attribute perm names {} axes of an input of {}",
                                       perm.size(), dims.size()));
  }
  CKPLAN_RETURN_IF_ERROR(RequireDims(spec, spec.output(0), "its output", shape.dims));
  return shape;
}

// ---- Slice --------------------------------------------------------------------------------------

// The range of one axis. Bounds may lie beyond the axis; negative bounds count from its end.
struct Range {
  int64_t start = 0, step = 1;
  std::optional<int64_t> end;  // Absent if computed during the step; then trust the output's size.
};

int64_t ClampIndex(int64_t at, int64_t dim, int64_t low, int64_t high) {
  return std::clamp<int64_t>(at < 0 ? at + dim : at, low, high);
}

int64_t FirstOf(const Range& range, int64_t dim) {
  if (range.step > 0) return ClampIndex(range.start, dim, 0, dim);
  return ClampIndex(range.start, dim, 0, std::max<int64_t>(0, dim - 1));
}

// Returns the number of elements up to `end` or the end of the axis.
int64_t LengthOf(const Range& range, int64_t dim) {
  const int64_t first = FirstOf(range, dim);
  const bool is_forward = range.step > 0;
  int64_t end = is_forward ? dim : -1;
  if (range.end.has_value()) {
    end =
        is_forward ? ClampIndex(*range.end, dim, 0, dim) : ClampIndex(*range.end, dim, -1, dim - 1);
  }
  const int64_t span = dim == 0 ? 0 : is_forward ? end - first : first - end;
  if (span <= 0) return 0;
  // Does not negate the step, which can be the smallest int64.
  return 1 + (is_forward ? (span - 1) / range.step : -((span - 1) / range.step));
}

// Returns the range of each axis, or nothing for axes that the slice keeps whole.
Result<std::vector<std::optional<Range>>> RangesOf(const OpSpec& spec) {
  const size_t rank = spec.input(0).dims.size();
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<Dims> starts, KnownInts(spec, 1, "starts"));
  CKPLAN_ASSIGN_OR_RETURN(std::optional<Dims> axes, KnownInts(spec, 3, "axes"));
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<Dims> steps, KnownInts(spec, 4, "steps"));
  std::optional<Dims> ends;
  if (!spec.input(2).is_present || spec.input(2).known.has_value()) {
    CKPLAN_ASSIGN_OR_RETURN(ends, KnownInts(spec, 2, "ends"));
  }
  if (!starts.has_value()) return InvalidOp(spec, "it has no starts");
  if (!axes.has_value()) {
    axes.emplace(starts->size());
    std::iota(axes->begin(), axes->end(), int64_t{0});
  }
  for (const std::optional<Dims>& list : {ends, axes, steps}) {
    if (!list.has_value() || list->size() == starts->size()) continue;
    return InvalidOp(spec, "its starts, ends, axes and steps differ in length");
  }
  std::vector<std::optional<Range>> ranges(rank);
  for (size_t i = 0; i < axes->size(); ++i) {
    CKPLAN_ASSIGN_OR_RETURN(const size_t axis, NormalAxis(spec, (*axes)[i], rank));
    if (ranges[axis].has_value()) {
      return InvalidOp(spec, fmt::format("it slices axis {} twice", axis));
    }
    Range range{(*starts)[i], steps.has_value() ? (*steps)[i] : 1, std::nullopt};
    if (range.step == 0) return InvalidOp(spec, fmt::format("its step of axis {} is 0", axis));
    if (ends.has_value()) range.end = (*ends)[i];
    ranges[axis] = range;
  }
  return ranges;
}

Result<MoveShape> ReadSlice(const OpSpec& spec) {
  const Dims& dims = spec.input(0).dims;
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<std::optional<Range>> ranges, RangesOf(spec));
  MoveShape shape{spec.output(0).dims, RowMajorStrides(dims)};
  if (shape.dims.size() != dims.size()) {
    return InvalidOp(spec, fmt::format("its output has {} axes and its input {}", shape.dims.size(),
                                       dims.size()));
  }
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const Range range = ranges[axis].value_or(Range{0, 1, dims[axis]});
    const int64_t length = LengthOf(range, dims[axis]);
    const bool fits =
        range.end.has_value() ? shape.dims[axis] == length : shape.dims[axis] <= length;
    if (!fits) {
      return InvalidOp(spec, fmt::format("its output has {} elements along axis {}, but the slice "
                                         "has {}",
                                         shape.dims[axis], axis, length));
    }
    shape.base += FirstOf(range, dims[axis]) * shape.strides[axis];
    // A step longer than the axis takes one element. The clamp prevents overflow of the product.
    const int64_t longest = std::max<int64_t>(1, dims[axis]);
    shape.strides[axis] *= std::clamp<int64_t>(range.step, -longest, longest);
  }
  return shape;
}

// ---- Blocks -------------------------------------------------------------------------------------

// The tensors of DepthToSpace and SpaceToDepth: images, and the same pixels with each square of
// block x block pixels moved into the channels.
struct Blocks {
  Dims images, channels;  // [N, C, H, W], and [N, C * block * block, H / block, W / block].
  int64_t block = 1;
};

Result<Blocks> ReadBlocks(const OpSpec& spec, const Operand& images, const Operand& channels) {
  const Blocks blocks{images.dims, channels.dims, spec.Int("blocksize", 0)};
  const Dims& from = blocks.images;
  const Dims& to = blocks.channels;
  const int64_t b = blocks.block;
  if (b < 1) return InvalidOp(spec, fmt::format("attribute blocksize is {}", b));
  if (from.size() != 4 || to.size() != 4) {
    return InvalidOp(spec, "its input and output are not both [batch, channels, height, width]");
  }
  const bool divides = from[2] % b == 0 && from[3] % b == 0 && to[1] % b == 0 && to[1] / b % b == 0;
  if (!divides || from[0] != to[0] || from[1] != to[1] / b / b || from[2] / b != to[2] ||
      from[3] / b != to[3]) {
    return InvalidOp(
        spec, fmt::format("blocks of {0} x {0} of {1} are not {2}", b, TextOf(from), TextOf(to)));
  }
  return blocks;
}

Result<MoveShape> ReadDepthToSpace(const OpSpec& spec) {
  const std::string mode = spec.String("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") {
    return InvalidOp(spec, fmt::format("attribute mode is \"{}\" instead of DCR or CRD", mode));
  }
  CKPLAN_ASSIGN_OR_RETURN(const Blocks of, ReadBlocks(spec, spec.output(0), spec.input(0)));
  if (spec.output(0).elements() == 0) return MoveShape{{0}, {1}};  // Blocks may be of any size.
  const Dims& y = of.images;
  const int64_t block = of.block, height = of.channels[2], width = of.channels[3];
  const int64_t pixels = height * width;
  // The axes of the output: sample, channel, row, row in block, column, column in block.
  const int64_t channel = mode == "CRD" ? block * block * pixels : pixels;
  const int64_t in_block = mode == "CRD" ? pixels : y[1] * pixels;
  return MoveShape{{y[0], y[1], height, block, width, block},
                   {y[1] * block * block * pixels, channel, width, block * in_block, 1, in_block}};
}

Result<MoveShape> ReadSpaceToDepth(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const Blocks of, ReadBlocks(spec, spec.input(0), spec.output(0)));
  if (spec.output(0).elements() == 0) return MoveShape{{0}, {1}};  // Blocks may be of any size.
  const Dims& x = of.images;
  const int64_t block = of.block, pixels = x[2] * x[3];
  // The axes of the output: sample, row in block, column in block, channel, row, column.
  return MoveShape{{x[0], block, block, x[1], of.channels[2], of.channels[3]},
                   {x[1] * pixels, x[3], 1, pixels, block * x[3], block}};
}

// ---- Repetitions --------------------------------------------------------------------------------

Result<MoveShape> ReadExpand(const OpSpec& spec) {
  const Dims& x = spec.input(0).dims;
  const Dims& y = spec.output(0).dims;
  bool fits = x.size() <= y.size();
  for (size_t axis = 0; fits && axis < x.size(); ++axis) {
    fits = x[axis] == 1 || x[axis] == y[axis + y.size() - x.size()];
  }
  if (!fits) {
    return InvalidOp(spec, fmt::format("its input is {}, which cannot be broadcast to its output "
                                       "{}",
                                       TextOf(x), TextOf(y)));
  }
  return MoveShape{y, BroadcastStrides(x, y)};
}

Result<MoveShape> ReadTile(const OpSpec& spec) {
  const Dims& x = spec.input(0).dims;
  const Dims& y = spec.output(0).dims;
  const Dims strides = RowMajorStrides(x);
  if (x.size() != y.size()) {
    return InvalidOp(spec,
                     fmt::format("its output has {} axes and its input {}", y.size(), x.size()));
  }
  MoveShape shape;
  for (size_t axis = 0; axis < x.size(); ++axis) {
    if (x[axis] == 0 ? y[axis] != 0 : y[axis] % x[axis] != 0) {
      return InvalidOp(spec,
                       fmt::format("output {} is not a tiling of input {}", TextOf(y), TextOf(x)));
    }
    shape.dims.push_back(x[axis] == 0 ? 0 : y[axis] / x[axis]);
    shape.dims.push_back(x[axis]);
    shape.strides.push_back(0);
    shape.strides.push_back(x[axis] == 1 ? 0 : strides[axis]);
  }
  return shape;
}

}  // namespace

Result<MoveShape> ReadMoveShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireLikeTypes(spec));
  if (spec.type == "Transpose") return ReadTranspose(spec);
  if (spec.type == "Slice") return ReadSlice(spec);
  if (spec.type == "DepthToSpace") return ReadDepthToSpace(spec);
  if (spec.type == "SpaceToDepth") return ReadSpaceToDepth(spec);
  return ReadView(spec);
}

Result<MoveShape> ReadRepeatShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireLikeTypes(spec));
  return spec.type == "Tile" ? ReadTile(spec) : ReadExpand(spec);
}

std::span<const FamilyRow> MoveFamily() {
  static constexpr FamilyRow kRows[] = {
      {"Identity", ValidateBy<ReadMoveShape>},
      {"Reshape", ValidateBy<ReadMoveShape>},
      {"Flatten", ValidateBy<ReadMoveShape>},
      {"Squeeze", ValidateBy<ReadMoveShape>},
      {"Unsqueeze", ValidateBy<ReadMoveShape>},
      {"Transpose", ValidateBy<ReadMoveShape>},
      {"Slice", ValidateBy<ReadMoveShape>, "starts and steps must be known before the step"},
      {"DepthToSpace", ValidateBy<ReadMoveShape>},
      {"SpaceToDepth", ValidateBy<ReadMoveShape>},
      {"Expand", ValidateBy<ReadRepeatShape>},
      {"Tile", ValidateBy<ReadRepeatShape>},
  };
  return kRows;
}

namespace {

// A part must have the dimensions of the whole, except along the axis.
Result<Done> ValidatePart(const OpSpec& spec, const Operand& part, const Operand& whole,
                          size_t axis, size_t position) {
  const std::string name = fmt::format("part {}", position);
  Dims expected = whole.dims;
  if (part.dims.size() == expected.size()) expected[axis] = part.dims[axis];
  CKPLAN_RETURN_IF_ERROR(RequireDims(spec, part, name, expected));
  return RequireType(spec, part, name, whole.type);
}

Result<JoinShape> ReadParts(const OpSpec& spec, const Operand& whole,
                            const std::vector<Operand>& parts, size_t axis) {
  const AxisView view = ViewAlong(whole.dims, axis);
  JoinShape shape;
  shape.rows = view.outer;
  shape.row_size = view.size * view.inner;
  int64_t sizes = 0;  // The sum of the parts' sizes along the axis.
  for (size_t i = 0; i < parts.size(); ++i) {
    shape.begin.push_back(sizes * view.inner);
    if (parts[i].is_present) {
      CKPLAN_RETURN_IF_ERROR(ValidatePart(spec, parts[i], whole, axis, i));
      sizes += parts[i].dims[axis];
      // Checked at each part, so that many parts cannot overflow the sum.
      if (sizes > view.size) break;
    }
    shape.size.push_back(parts[i].is_present ? parts[i].dims[axis] * view.inner : 0);
  }
  if (sizes == view.size) return shape;
  const bool lacks_some =
      std::any_of(parts.begin(), parts.end(), [](const Operand& part) { return !part.is_present; });
  if (lacks_some && sizes < view.size) {
    return UnsupportedOp(spec, "one of its outputs has no name, so its size is unknown");
  }
  return InvalidOp(spec, fmt::format("its parts have {}{} elements along axis {}, and the whole "
                                     "has {}",
                                     sizes > view.size ? "at least " : "", sizes, axis, view.size));
}

}  // namespace

Result<JoinShape> ReadConcatShape(const OpSpec& spec) {
  if (spec.inputs.empty()) return InvalidOp(spec, "it has no inputs");
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, spec.inputs.size()));
  const Operand& whole = spec.output(0);
  // Before opset 4, the axis was optional.
  CKPLAN_ASSIGN_OR_RETURN(const size_t axis,
                          NormalAxis(spec, spec.Int("axis", 1), whole.dims.size()));
  return ReadParts(spec, whole, spec.inputs, axis);
}

// The outputs' sizes determine where the input is split.
Result<JoinShape> ReadSplitShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, 1, 0));
  const Operand& whole = spec.input(0);
  CKPLAN_ASSIGN_OR_RETURN(const size_t axis,
                          NormalAxis(spec, spec.Int("axis", 0), whole.dims.size()));
  return ReadParts(spec, whole, spec.outputs, axis);
}

std::span<const FamilyRow> JoinFamily() {
  static constexpr FamilyRow kRows[] = {
      {"Concat", ValidateBy<ReadConcatShape>},
      {"Split", ValidateBy<ReadSplitShape>},
  };
  return kRows;
}

Result<ReverseShape> ReadReverseShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireSameShape(spec));
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, 2));
  const Dims& dims = spec.input(0).dims;
  const int64_t time = spec.Int("time_axis", 0);
  const int64_t batch = spec.Int("batch_axis", 1);
  const bool are_first_two = (time == 0 && batch == 1) || (time == 1 && batch == 0);
  if (dims.size() < 2 || !are_first_two) {
    return InvalidOp(spec, fmt::format("its batch axis {} and time axis {} are not the first two "
                                       "of its {} axes",
                                       batch, time, dims.size()));
  }
  ReverseShape shape{dims[0], dims[1], Product(Dims(dims.begin() + 2, dims.end())), time == 0};
  const Operand& lengths = spec.input(1);
  CKPLAN_RETURN_IF_ERROR(
      RequireElements(spec, lengths, "its list of lengths", time == 0 ? dims[1] : dims[0]));
  CKPLAN_RETURN_IF_ERROR(RequireType(spec, lengths, "its list of lengths", ElementType::kInt64));
  return shape;
}

std::span<const FamilyRow> ReverseFamily() {
  static constexpr FamilyRow kRows[] = {{"ReverseSequence", ValidateBy<ReadReverseShape>}};
  return kRows;
}

}  // namespace ckplan
