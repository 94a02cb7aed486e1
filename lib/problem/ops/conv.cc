#include "lib/problem/ops/conv.h"

#include <fmt/format.h>

#include "lib/problem/ops/judge.h"
#include "lib/problem/ops/sizes.h"

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
      {"Conv", JudgeBy<ReadConvShape>, kConvLimits},
      {"ConvTranspose", JudgeBy<ReadConvShape>, kConvLimits},
  };
  return kRows;
}

}  // namespace ckplan
