#include "lib/problem/ops/pool.h"

#include <fmt/format.h>

#include "lib/problem/ops/judge.h"
#include "lib/problem/ops/sizes.h"

namespace ckplan {

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
      {"AveragePool", JudgeBy<ReadPoolShape>, kPoolLimits},
      {"GlobalAveragePool", JudgeBy<ReadPoolShape>},
      {"GlobalMaxPool", JudgeBy<ReadPoolShape>},
      {"MaxPool", JudgeBy<ReadPoolShape>, kPoolLimits},
  };
  return kRows;
}

}  // namespace ckplan
