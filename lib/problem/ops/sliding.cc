#include "lib/problem/ops/sliding.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "lib/base/units.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_checks.h"

namespace ckplan {
namespace {

// Checks that a list has `count` entries of at least `min`.
Result<Done> CheckEntries(const OpSpec& spec, std::string_view name, const Dims& entries,
                          size_t count, int64_t min) {
  if (entries.size() != count) {
    return InvalidOp(spec,
                     fmt::format("{} has {} entries instead of {}", name, entries.size(), count));
  }
  for (const int64_t entry : entries) {
    if (entry < min) {
      return InvalidOp(spec, fmt::format("{} is {}; each entry must be at least {}", name,
                                         TextOf(entries), min));
    }
    CKPLAN_RETURN_IF_ERROR(RequireLibrarySize(spec, fmt::format("an entry of {}", name), entry));
  }
  return Done{};
}

// Reads a list attribute. If it is empty or absent, all entries are `fallback`.
Result<Dims> ReadEntries(const OpSpec& spec, std::string_view attribute, size_t count,
                         int64_t fallback, int64_t min) {
  Dims entries = spec.Ints(attribute);
  if (entries.empty()) entries.assign(count, fallback);
  CKPLAN_RETURN_IF_ERROR(
      CheckEntries(spec, fmt::format("attribute {}", attribute), entries, count, min));
  return entries;
}

Result<Dims> ReadKernel(const OpSpec& spec, size_t rank, const Dims& weights_kernel) {
  if (weights_kernel.empty() && spec.Ints("kernel_shape").empty()) {
    return InvalidOp(spec, "attribute kernel_shape is missing");
  }
  if (!weights_kernel.empty()) {
    CKPLAN_RETURN_IF_ERROR(
        CheckEntries(spec, "the kernel of its weights", weights_kernel, rank, 1));
  }
  if (spec.Ints("kernel_shape").empty()) return weights_kernel;
  CKPLAN_ASSIGN_OR_RETURN(Dims kernel, ReadEntries(spec, "kernel_shape", rank, 1, 1));
  if (weights_kernel.empty() || kernel == weights_kernel) return kernel;
  return InvalidOp(spec, fmt::format("attribute kernel_shape is {}, but the kernel of its weights "
                                     "is {}",
                                     TextOf(kernel), TextOf(weights_kernel)));
}

// Pads the input so that every window fits, with half of the padding on each side. `extra` is a
// transposed convolution's output_padding.
void PadToFit(Window& window, const std::vector<int64_t>& extra, bool odd_at_begin) {
  for (size_t i = 0; i < window.rank(); ++i) {
    const int64_t reach = (window.out[i] - 1) * window.strides[i] + window.extent(i) + extra[i];
    const int64_t total = std::max<int64_t>(0, reach - window.in[i]);
    window.begin[i] = odd_at_begin ? total - total / 2 : total / 2;
    window.end[i] = total - window.begin[i];
  }
}

bool HasSamePadding(const OpSpec& spec) {
  const std::string rule = spec.String("auto_pad", "NOTSET");
  return rule == "SAME_UPPER" || rule == "SAME_LOWER";
}

bool HasOutputShape(const OpSpec& spec, WindowKind kind) {
  return kind == WindowKind::kTransposed && !spec.Ints("output_shape").empty();
}

Result<Done> CheckAutoPad(const OpSpec& spec) {
  const std::string rule = spec.String("auto_pad", "NOTSET");
  if (rule == "NOTSET" || rule == "VALID" || HasSamePadding(spec)) return Done{};
  return InvalidOp(spec, fmt::format("attribute auto_pad is \"{}\" instead of NOTSET, VALID, "
                                     "SAME_UPPER or SAME_LOWER",
                                     rule));
}

Error OutputSizeError(const OpSpec& spec, size_t axis, int64_t actual, int64_t expected) {
  return InvalidOp(spec, fmt::format("spatial axis {} of its output is {}, but its windows give {}",
                                     axis, actual, expected));
}

// Counts the windows along an axis. `rounds_up` adds a window for leftover elements.
int64_t CountWindows(const Window& window, size_t axis, bool rounds_up) {
  const int64_t room =
      window.in[axis] + window.begin[axis] + window.end[axis] - window.extent(axis);
  const int64_t stride = window.strides[axis];
  return (room + (rounds_up ? stride - 1 : 0)) / stride + 1;
}

bool RoundsUp(const OpSpec& spec, WindowKind kind) {
  return kind == WindowKind::kPool && spec.Int("ceil_mode", 0) != 0;
}

// With `rounds_up`, a window may end beyond the padding.
Result<Done> CheckFits(const OpSpec& spec, const Window& window, size_t axis, bool rounds_up) {
  CKPLAN_RETURN_IF_ERROR(RequireLibrarySize(
      spec, fmt::format("the window on spatial axis {}", axis), window.extent(axis)));
  const int64_t missing =
      window.extent(axis) - (window.in[axis] + window.begin[axis] + window.end[axis]);
  if (missing <= 0 || (rounds_up && missing < window.strides[axis])) return Done{};
  return InvalidOp(
      spec, fmt::format(
                "on spatial axis {} its window covers {} elements, more than its input's {} "
                "with {} of padding",
                axis, window.extent(axis), window.in[axis], window.begin[axis] + window.end[axis]));
}

Result<Done> CheckOutput(const OpSpec& spec, const Window& window, WindowKind kind, size_t axis) {
  const int64_t out = window.out[axis];
  const int64_t stride = window.strides[axis];
  if (HasSamePadding(spec)) {
    const int64_t expected = (window.in[axis] - 1) / stride + 1;
    return out == expected ? Result<Done>(Done{}) : OutputSizeError(spec, axis, out, expected);
  }
  const bool rounds_up = RoundsUp(spec, kind);
  int64_t expected = CountWindows(window, axis, rounds_up);
  if (rounds_up) {
    expected = DropWindowInPadding(expected, stride, window.in[axis], window.begin[axis]);
  }
  return out == expected ? Result<Done>(Done{}) : OutputSizeError(spec, axis, out, expected);
}

// A transposed convolution's output is window.in.
Result<Done> CheckTransposed(const OpSpec& spec, const Window& window, const Dims& extra,
                             size_t axis) {
  const int64_t full_size =
      (window.out[axis] - 1) * window.strides[axis] + extra[axis] + window.extent(axis);
  const bool has_shape = HasOutputShape(spec, WindowKind::kTransposed);
  const int64_t expected = has_shape ? spec.Ints("output_shape")[axis]
                           : HasSamePadding(spec)
                               ? window.in[axis]
                               : full_size - window.begin[axis] - window.end[axis];
  if (window.in[axis] != expected) return OutputSizeError(spec, axis, window.in[axis], expected);
  if (CountWindows(window, axis, false) == window.out[axis]) return Done{};
  return UnsupportedOp(
      spec, fmt::format("on spatial axis {} its output of {} leaves room for another window", axis,
                        window.in[axis]));
}

Result<Done> CheckAxis(const OpSpec& spec, const Window& window, const Dims& extra, WindowKind kind,
                       size_t axis) {
  CKPLAN_RETURN_IF_ERROR(CheckFits(spec, window, axis, RoundsUp(spec, kind)));
  if (kind == WindowKind::kTransposed) return CheckTransposed(spec, window, extra, axis);
  return CheckOutput(spec, window, kind, axis);
}

Result<Done> CheckSizes(const OpSpec& spec, const Window& window) {
  for (const Dims* sizes : {&window.in, &window.out}) {
    for (const int64_t size : *sizes) {
      CKPLAN_RETURN_IF_ERROR(RequireLibrarySize(spec, "one of its spatial axes", size));
    }
  }
  return Done{};
}

// Reads strides, dilations and pads.
Result<Done> ReadSteps(const OpSpec& spec, Window& window) {
  const size_t rank = window.rank();
  CKPLAN_ASSIGN_OR_RETURN(window.strides, ReadEntries(spec, "strides", rank, 1, 1));
  CKPLAN_ASSIGN_OR_RETURN(window.dilations, ReadEntries(spec, "dilations", rank, 1, 1));
  CKPLAN_ASSIGN_OR_RETURN(const Dims pads, ReadEntries(spec, "pads", 2 * rank, 0, 0));
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(rank);
  window.begin.assign(pads.begin(), middle);
  window.end.assign(middle, pads.end());
  return Done{};
}

}  // namespace

std::array<WindowAxis, 3> ThreeAxes(const Window& window) {
  std::array<WindowAxis, 3> axes;
  const size_t skipped = axes.size() - window.rank();
  for (size_t i = 0; i < window.rank(); ++i) {
    axes[i + skipped] = {window.in[i],        window.out[i],   window.kernel[i], window.strides[i],
                         window.dilations[i], window.begin[i], window.end[i]};
  }
  return axes;
}

int64_t DropWindowInPadding(int64_t windows, int64_t stride, int64_t in, int64_t begin) {
  const auto origin = CheckedMul(windows - 1, stride);
  const auto end_of_input = CheckedAdd(in, begin);
  const bool is_in_padding = origin && end_of_input && *origin >= *end_of_input;
  return windows > 1 && is_in_padding ? windows - 1 : windows;
}

Result<Window> ReadWindow(const OpSpec& spec, const Operand& in, const Operand& out,
                          const Dims& kernel, WindowKind kind) {
  CKPLAN_RETURN_IF_ERROR(CheckAutoPad(spec));
  Window window;
  window.in.assign(in.dims.begin() + 2, in.dims.end());
  window.out.assign(out.dims.begin() + 2, out.dims.end());
  CKPLAN_RETURN_IF_ERROR(CheckSizes(spec, window));
  const size_t rank = window.rank();
  CKPLAN_ASSIGN_OR_RETURN(window.kernel, ReadKernel(spec, rank, kernel));
  CKPLAN_RETURN_IF_ERROR(ReadSteps(spec, window));
  CKPLAN_ASSIGN_OR_RETURN(const Dims extra, ReadEntries(spec, "output_padding", rank, 0, 0));
  if (HasOutputShape(spec, kind)) {
    CKPLAN_RETURN_IF_ERROR(ReadEntries(spec, "output_shape", rank, 1, 1));
  }
  if (HasSamePadding(spec)) {
    PadToFit(window, extra, spec.String("auto_pad", "") == "SAME_LOWER");
  } else if (HasOutputShape(spec, kind)) {
    PadToFit(window, extra, true);
  }
  for (size_t axis = 0; axis < rank; ++axis) {
    CKPLAN_RETURN_IF_ERROR(CheckAxis(spec, window, extra, kind, axis));
  }
  return window;
}

Result<Window> ReadWindowsOver(const OpSpec& spec, const Dims& in, const Dims& kernel,
                               std::string_view kernel_name) {
  Window window;
  window.in = in;
  window.kernel = kernel;
  CKPLAN_RETURN_IF_ERROR(CheckSizes(spec, window));
  CKPLAN_RETURN_IF_ERROR(CheckEntries(spec, kernel_name, kernel, window.rank(), 1));
  CKPLAN_RETURN_IF_ERROR(ReadSteps(spec, window));
  for (size_t axis = 0; axis < window.rank(); ++axis) {
    CKPLAN_RETURN_IF_ERROR(CheckFits(spec, window, axis, /*rounds_up=*/false));
    window.out.push_back(CountWindows(window, axis, false));
  }
  return window;
}

namespace {

constexpr std::string_view kConvLimits = "1 to 3 spatial axes";

Result<Done> CheckConvRanks(const OpSpec& spec) {
  const size_t rank = spec.input(0).dims.size();
  if (rank < 3 || rank > 5) {
    return UnsupportedOp(
        spec, fmt::format("its input has {} axes; 3 to 5 are supported, two of which are not "
                          "spatial",
                          rank));
  }
  for (const Operand* operand : {&spec.input(1), &spec.output(0)}) {
    if (operand->dims.size() == rank) continue;
    return InvalidOp(spec, fmt::format("its {} has {} axes and its input {}",
                                       operand == &spec.input(1) ? "weight" : "output",
                                       operand->dims.size(), rank));
  }
  if (spec.output(0).dims[0] == spec.input(0).dims[0]) return Done{};
  return InvalidOp(spec, fmt::format("its output has {} samples and its input {}",
                                     spec.output(0).dims[0], spec.input(0).dims[0]));
}

// The weights of both operators are [map channels, image channels per group, kernel...].
Result<Done> CheckChannels(const OpSpec& spec, const ConvShape& shape) {
  const int64_t groups = shape.groups;
  if (groups < 1 || shape.in_channels % groups != 0 || shape.out_channels % groups != 0) {
    return InvalidOp(spec,
                     fmt::format("attribute group is {}, which does not divide the {} channels of "
                                 "its input and the {} of its output",
                                 groups, spec.input(0).dims[1], spec.output(0).dims[1]));
  }
  Dims expected = spec.input(1).dims;
  expected[0] = shape.out_channels;
  expected[1] = shape.in_channels / groups;
  CKPLAN_RETURN_IF_ERROR(RequireDims(spec, spec.input(1), "its weight", expected));
  return RequireOptional(spec, spec.input(2), "its bias", {spec.output(0).dims[1]});
}

// Libraries use int32 for indices within a sample and within the weights.
Result<Done> CheckLibrarySizes(const OpSpec& spec, const ConvShape& shape) {
  CKPLAN_RETURN_IF_ERROR(RequireLibrarySize(spec, "its batch", shape.batch));
  CKPLAN_RETURN_IF_ERROR(RequireLibrarySize(spec, "the number of elements of a sample of its input",
                                            spec.input(0).elements() / shape.batch));
  CKPLAN_RETURN_IF_ERROR(RequireLibrarySize(spec,
                                            "the number of elements of a sample of its output",
                                            spec.output(0).elements() / shape.batch));
  return RequireLibrarySize(spec, "the number of its weights", spec.input(1).elements());
}

// Backends may make a padded copy of the image.
Result<Done> CheckPaddedImage(const OpSpec& spec, const ConvShape& shape) {
  Dims padded = {shape.batch, shape.in_channels, 4};
  for (size_t i = 0; i < shape.window.rank(); ++i) {
    padded.push_back(shape.window.in[i] + shape.window.begin[i] + shape.window.end[i]);
  }
  if (SizeProduct(padded).has_value()) return Done{};
  return UnsupportedOp(spec, "the bytes of its image with the padding do not fit 64 bits");
}

}  // namespace

Result<ConvShape> ReadConvShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireFloatTensors(spec, 2));
  CKPLAN_RETURN_IF_ERROR(CheckConvRanks(spec));
  ConvShape shape;
  shape.is_transposed = spec.type == "ConvTranspose";
  shape.has_bias = spec.input(2).is_present;
  const Operand& image = shape.is_transposed ? spec.output(0) : spec.input(0);
  const Operand& map = shape.is_transposed ? spec.input(0) : spec.output(0);
  shape.batch = image.dims[0];
  shape.groups = spec.Int("group", 1);
  shape.in_channels = image.dims[1];
  shape.out_channels = map.dims[1];
  CKPLAN_RETURN_IF_ERROR(CheckChannels(spec, shape));
  const Dims& weights = spec.input(1).dims;
  CKPLAN_ASSIGN_OR_RETURN(
      shape.window,
      ReadWindow(spec, image, map, {weights.begin() + 2, weights.end()},
                 shape.is_transposed ? WindowKind::kTransposed : WindowKind::kConvolution));
  CKPLAN_RETURN_IF_ERROR(CheckLibrarySizes(spec, shape));
  CKPLAN_RETURN_IF_ERROR(CheckPaddedImage(spec, shape));
  return shape;
}

std::span<const FamilyRow> ConvFamily() {
  static constexpr FamilyRow kRows[] = {
      {"Conv", ValidateBy<ReadConvShape>, kConvLimits},
      {"ConvTranspose", ValidateBy<ReadConvShape>, kConvLimits},
  };
  return kRows;
}

namespace {

constexpr std::string_view kPoolLimits = "1 to 3 spatial axes";
constexpr int64_t kMaxIndexBytes = 4;  // The index of a maximum, saved for backward.

bool IsGlobal(const OpSpec& spec) { return spec.type.starts_with("Global"); }
bool IsMaxPool(const OpSpec& spec) { return spec.type.ends_with("MaxPool"); }

Result<Done> CheckPoolRanks(const OpSpec& spec) {
  const Dims& x = spec.input(0).dims;
  const Dims& y = spec.output(0).dims;
  if (x.size() < 2 || x.size() != y.size() || x[0] != y[0] || x[1] != y[1]) {
    return InvalidOp(spec, fmt::format("its input {} and output {} differ in axes, samples or "
                                       "channels",
                                       TextOf(x), TextOf(y)));
  }
  if (IsGlobal(spec) || (x.size() >= 3 && x.size() <= 5)) return Done{};
  return UnsupportedOp(
      spec, fmt::format("its input has {} axes; 3 to 5 are supported, two of which are not spatial",
                        x.size()));
}

// Checks MaxPool's second output, or the statistic that replaces it.
Result<Done> CheckIndices(const OpSpec& spec) {
  if (!IsMaxPool(spec)) return Done{};
  const Operand& indices = spec.output(1);
  if (indices.is_present) {
    CKPLAN_RETURN_IF_ERROR(RequireDims(spec, indices, "its second output", spec.output(0).dims));
    CKPLAN_RETURN_IF_ERROR(RequireType(spec, indices, "its second output", ElementType::kInt64));
    if (indices.is_read_by_backward) return Done{};
  }
  return RequireStatistic(spec, {kMaxIndexBytes, spec.output(0).elements()});
}

// Checks that each window covers an element of the input. A dilated window that begins before the
// input may step over it.
Result<Done> CheckWindowsMeetInput(const OpSpec& spec, const WindowAxis& axis) {
  int64_t missing = axis.origin(axis.out - 1) >= axis.in ? axis.out - 1 : -1;
  for (int64_t o = 0; o < axis.out && axis.origin(o) < 0 && missing < 0; ++o) {
    if (axis.first(o) >= axis.last(o)) missing = o;
  }
  if (missing < 0) return Done{};
  return InvalidOp(
      spec,
      fmt::format("window {} of {} lies entirely in the padding: it begins at {} of an axis of "
                  "{} elements",
                  missing, axis.out, axis.origin(missing), axis.in));
}

Result<Done> ReadAxes(const OpSpec& spec, PoolShape& shape) {
  CKPLAN_ASSIGN_OR_RETURN(const Window window,
                          ReadWindow(spec, spec.input(0), spec.output(0), {}, WindowKind::kPool));
  shape.axes = ThreeAxes(window);
  for (const WindowAxis& axis : shape.axes) {
    CKPLAN_RETURN_IF_ERROR(CheckWindowsMeetInput(spec, axis));
  }
  return Done{};
}

Result<Done> ReadGlobalAxes(const OpSpec& spec, PoolShape& shape) {
  Dims expected(spec.input(0).dims.size(), 1);
  std::copy_n(spec.input(0).dims.begin(), 2, expected.begin());
  CKPLAN_RETURN_IF_ERROR(RequireDims(spec, spec.output(0), "its output", expected));
  shape.axes[2].in = shape.axes[2].kernel = spec.input(0).elements() / shape.planes;
  return Done{};
}

// Kernels use int32 for indices within a plane, and int64 for all positions of all windows.
Result<Done> CheckCounts(const OpSpec& spec, const PoolShape& shape) {
  CKPLAN_RETURN_IF_ERROR(
      RequireLibrarySize(spec, "the number of elements of an image", shape.in()));
  CKPLAN_RETURN_IF_ERROR(
      RequireLibrarySize(spec, "the number of elements of an image of its output", shape.out()));
  const auto& [d, h, w] = shape.axes;
  if (SizeProduct({shape.out(), d.kernel, h.kernel, w.kernel}).has_value()) return Done{};
  return UnsupportedOp(spec, "the number of elements of all its windows does not fit 64 bits");
}

}  // namespace

bool PoolShape::is_one_window() const {
  return std::all_of(axes.begin(), axes.end(), [](const WindowAxis& axis) {
    return axis.out == 1 && axis.last(0) - axis.first(0) == axis.in;
  });
}

Result<PoolShape> ReadPoolShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireFloatTensors(spec, 1));
  CKPLAN_RETURN_IF_ERROR(CheckPoolRanks(spec));
  CKPLAN_RETURN_IF_ERROR(CheckIndices(spec));
  PoolShape shape;
  shape.planes = spec.input(0).dims[0] * spec.input(0).dims[1];
  CKPLAN_RETURN_IF_ERROR(IsGlobal(spec) ? ReadGlobalAxes(spec, shape) : ReadAxes(spec, shape));
  CKPLAN_RETURN_IF_ERROR(CheckCounts(spec, shape));
  shape.counts_padding = spec.Int("count_include_pad", 0) != 0;
  shape.saves_output = spec.output(1).is_present && spec.output(1).is_read_by_backward;
  shape.is_column_major = spec.Int("storage_order", 0) == 1;
  if (spec.input(0).is_channels_last || spec.output(0).is_channels_last) {
    shape.interleaved = spec.input(0).dims[1];
  }
  return shape;
}

std::span<const FamilyRow> PoolFamily() {
  static constexpr FamilyRow kRows[] = {
      {"AveragePool", ValidateBy<ReadPoolShape>, kPoolLimits},
      {"GlobalAveragePool", ValidateBy<ReadPoolShape>},
      {"GlobalMaxPool", ValidateBy<ReadPoolShape>},
      {"MaxPool", ValidateBy<ReadPoolShape>, kPoolLimits},
  };
  return kRows;
}

namespace {

constexpr std::string_view kCol2ImLimits =
    "1 to 3 spatial axes, whose sizes must be known before the step";

// Reads an input that is a list of sizes.
Result<Dims> ReadSizes(const OpSpec& spec, size_t input, std::string_view name) {
  const Operand& operand = spec.input(input);
  CKPLAN_RETURN_IF_ERROR(
      RequireType(spec, operand, fmt::format("its {}", name), ElementType::kInt64));
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<Dims> known, KnownInts(spec, input, name));
  const Dims sizes = known.value_or(Dims{});
  if (!sizes.empty() && sizes.size() <= 3) return sizes;
  return UnsupportedOp(spec,
                       fmt::format("its {} has {} axes; 1 to 3 are supported", name, sizes.size()));
}

// Checks the input and the output against the number of blocks in the image.
Result<Done> CheckOperands(const OpSpec& spec, const Window& window) {
  const Dims& x = spec.input(0).dims;
  if (x.size() != 3) {
    return InvalidOp(spec, fmt::format("its input is {} instead of [batch, channels * block, "
                                       "blocks]",
                                       TextOf(x)));
  }
  const std::optional<int64_t> block = SizeProduct(window.kernel);
  if (!block.has_value() || x[1] % *block != 0) {
    return InvalidOp(spec, fmt::format("axis 1 of its input is {}, which is not a multiple of the "
                                       "elements in a block of {}",
                                       x[1], TextOf(window.kernel)));
  }
  if (SizeProduct(window.out) != x[2]) {
    return InvalidOp(spec, fmt::format("its input has {} blocks, but its image has {}", x[2],
                                       TextOf(window.out)));
  }
  Dims expected = {x[0], x[1] / *block};
  expected.insert(expected.end(), window.in.begin(), window.in.end());
  return RequireDims(spec, spec.output(0), "its output", expected);
}

}  // namespace

Result<Col2ImShape> ReadCol2ImShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireFloatTensors(spec, 1));
  CKPLAN_RETURN_IF_ERROR(RequireOperands(spec, 3));
  CKPLAN_ASSIGN_OR_RETURN(const Dims image, ReadSizes(spec, 1, "image_shape"));
  CKPLAN_ASSIGN_OR_RETURN(const Dims block, ReadSizes(spec, 2, "block_shape"));
  CKPLAN_ASSIGN_OR_RETURN(const Window window,
                          ReadWindowsOver(spec, image, block, "its block_shape"));
  CKPLAN_RETURN_IF_ERROR(CheckOperands(spec, window));
  return Col2ImShape{spec.output(0).dims[0] * spec.output(0).dims[1], ThreeAxes(window)};
}

std::span<const FamilyRow> Col2ImFamily() {
  static constexpr FamilyRow kRows[] = {{"Col2Im", ValidateBy<ReadCol2ImShape>, kCol2ImLimits}};
  return kRows;
}

}  // namespace ckplan
