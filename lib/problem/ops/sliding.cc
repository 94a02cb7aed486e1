#include "lib/problem/ops/sliding.h"

#include <fmt/format.h>

#include <optional>

#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_checks.h"

namespace ckplan {

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

// The weights of both operators are [map channels, image channels of a group, kernel...].
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

// The libraries count in int32 within a sample and within the weights.
Result<Done> CheckLibrarySizes(const OpSpec& spec, const ConvShape& shape) {
  CKPLAN_RETURN_IF_ERROR(RequireLibrarySize(spec, "its batch", shape.batch));
  CKPLAN_RETURN_IF_ERROR(RequireLibrarySize(spec, "the number of elements of a sample of its input",
                                            spec.input(0).elements() / shape.batch));
  CKPLAN_RETURN_IF_ERROR(RequireLibrarySize(spec,
                                            "the number of elements of a sample of its output",
                                            spec.output(0).elements() / shape.batch));
  return RequireLibrarySize(spec, "the number of its weights", spec.input(1).elements());
}

// Checks the size of the padded image, because backends may make a padded copy of it.
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
constexpr int64_t kMaximumIndexBytes = 4;  // The index of a maximum, saved for backward.

bool IsGlobal(const OpSpec& spec) { return spec.type.starts_with("Global"); }
bool IsMaximum(const OpSpec& spec) { return spec.type.ends_with("MaxPool"); }

Result<Done> CheckPoolRanks(const OpSpec& spec) {
  const Dims& x = spec.input(0).dims;
  const Dims& y = spec.output(0).dims;
  if (x.size() < 2 || x.size() != y.size() || x[0] != y[0] || x[1] != y[1]) {
    return InvalidOp(spec, fmt::format("its input is {} and its output {}, which must have as many "
                                       "axes, samples and channels",
                                       TextOf(x), TextOf(y)));
  }
  if (IsGlobal(spec) || (x.size() >= 3 && x.size() <= 5)) return Done{};
  return UnsupportedOp(
      spec, fmt::format("its input has {} axes; 3 to 5 are supported, two of which are not spatial",
                        x.size()));
}

// Checks MaxPool's second output, or the statistic if backward does not read that output.
Result<Done> CheckIndices(const OpSpec& spec) {
  if (!IsMaximum(spec)) return Done{};
  const Operand& indices = spec.output(1);
  if (indices.is_present) {
    CKPLAN_RETURN_IF_ERROR(RequireDims(spec, indices, "its second output", spec.output(0).dims));
    CKPLAN_RETURN_IF_ERROR(RequireType(spec, indices, "its second output", ElementType::kInt64));
    if (indices.is_read_by_backward) return Done{};
  }
  return RequireStatistic(spec, {kMaximumIndexBytes, spec.output(0).elements()});
}

// Checks that each window covers an element of the input. A window that begins on the input does. A
// window that begins before the input may step over it, and a window that begins after the input
// covers none.
Result<Done> CheckWindowsMeetInput(const OpSpec& spec, const WindowAxis& axis) {
  int64_t missing = axis.origin(axis.out - 1) >= axis.in ? axis.out - 1 : -1;
  for (int64_t o = 0; o < axis.out && axis.origin(o) < 0 && missing < 0; ++o) {
    if (axis.first(o) >= axis.last(o)) missing = o;
  }
  if (missing < 0) return Done{};
  return InvalidOp(
      spec, fmt::format("window {} of {} lies wholly in the padding: it begins at {} of an axis of "
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

// Indices within a plane are int32; kernels count all positions of all windows in int64.
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

// Reads one of the inputs that are lists of sizes.
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

// Checks the input and the output against the number of blocks that lie on the image.
Result<Done> CheckOperands(const OpSpec& spec, const Window& window) {
  const Dims& x = spec.input(0).dims;
  if (x.size() != 3) {
    return InvalidOp(spec, fmt::format("its input is {} instead of [batch, channels * block, "
                                       "blocks]",
                                       TextOf(x)));
  }
  const std::optional<int64_t> block = SizeProduct(window.kernel);
  if (!block.has_value() || x[1] % *block != 0) {
    return InvalidOp(spec, fmt::format("axis 1 of its input is {}, which is no multiple of the "
                                       "elements of a block, {}",
                                       x[1], TextOf(window.kernel)));
  }
  if (SizeProduct(window.out) != x[2]) {
    return InvalidOp(spec, fmt::format("its input has {} blocks, but {} lie on its image", x[2],
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
