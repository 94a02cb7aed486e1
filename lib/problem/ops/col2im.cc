#include "lib/problem/ops/col2im.h"

#include <fmt/format.h>

#include <optional>

#include "lib/problem/ops/axes.h"
#include "lib/problem/ops/judge.h"
#include "lib/problem/ops/sizes.h"

namespace ckplan {

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
  static constexpr FamilyRow kRows[] = {{"Col2Im", JudgeBy<ReadCol2ImShape>, kCol2ImLimits}};
  return kRows;
}

}  // namespace ckplan
