#include "lib/problem/ops/pad.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "lib/base/checked.h"
#include "lib/problem/ops/axes.h"
#include "lib/problem/ops/judge.h"

namespace ckplan {

namespace {

enum class Border { kConstant, kEdge, kReflect, kWrap };

// Returns the index in [0, size) whose element fills a place outside, or -1 if none does.
int64_t IndexOutside(Border border, int64_t index, int64_t size) {
  if (size == 0) return -1;
  switch (border) {
    case Border::kConstant:
      return -1;
    case Border::kEdge:
      return std::clamp<int64_t>(index, 0, size - 1);
    case Border::kWrap:
      return (index % size + size) % size;
    case Border::kReflect:
      break;
  }
  if (size == 1) return 0;
  const int64_t period = 2 * (size - 1);
  const int64_t place = (index % period + period) % period;
  return std::min(place, period - place);
}

// Negative paddings crop. Reflection never reaches cropped elements.
AxisTaps PaddedTaps(Border border, int64_t input, int64_t before, int64_t after) {
  const int64_t cropped = std::max<int64_t>(0, -before);
  const int64_t size = std::max<int64_t>(0, input - cropped - std::max<int64_t>(0, -after));
  AxisTaps taps;
  taps.input_size = input;
  for (int64_t i = 0; i < input + before + after; ++i) {
    const int64_t inside = i - std::max<int64_t>(0, before);
    const bool is_inside = inside >= 0 && inside < size;
    const int64_t index = is_inside ? inside : IndexOutside(border, inside, size);
    if (index >= 0) taps.Add(index + cropped, 1);
    taps.Close();
  }
  return taps;
}

Result<Border> BorderOf(const OpSpec& spec) {
  const std::string mode = spec.String("mode", "constant");
  if (mode == "constant") return Border::kConstant;
  if (mode == "edge") return Border::kEdge;
  if (mode == "reflect") return Border::kReflect;
  if (mode == "wrap") return Border::kWrap;
  return InvalidOp(
      spec,
      fmt::format("attribute mode is \"{}\" instead of constant, edge, reflect or wrap", mode));
}

// Elements added before and after one axis; negative numbers crop.
struct Padding {
  int64_t before = 0, after = 0;
};

// Returns the padding of each axis of the input.
Result<std::vector<Padding>> PaddingsOf(const OpSpec& spec) {
  const size_t rank = spec.input(0).dims.size();
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<Dims> pads,
                          KnownInts(spec, 1, spec.Has("paddings") ? "paddings" : "pads"));
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<Dims> listed, KnownInts(spec, 3, "axes"));
  const size_t count = listed.has_value() ? listed->size() : rank;
  if (!pads.has_value() || pads->size() != 2 * count) {
    return InvalidOp(spec, fmt::format("it has {} pads for {} axes, which need two each",
                                       pads.has_value() ? pads->size() : 0, count));
  }
  std::vector<Padding> paddings(rank);
  for (size_t i = 0; i < count; ++i) {
    const int64_t axis = listed.has_value() ? (*listed)[i] : static_cast<int64_t>(i);
    CKPLAN_ASSIGN_OR_RETURN(const size_t normal, NormalAxis(spec, axis, rank));
    paddings[normal] = {(*pads)[i], (*pads)[i + count]};
  }
  return paddings;
}

Result<Done> JudgePadding(const OpSpec& spec, const Padding& padding, size_t axis) {
  const int64_t input = spec.input(0).dims[axis];
  const int64_t output = spec.output(0).dims[axis];
  const std::optional<int64_t> longer = CheckedAdd(input, padding.before);
  if (longer.has_value() && CheckedAdd(*longer, padding.after) == output &&
      padding.before >= -input && padding.after >= -input) {
    return Done{};
  }
  return InvalidOp(spec, fmt::format("pads {} and {} of axis {} do not make {} elements of {}",
                                     padding.before, padding.after, axis, output, input));
}

Result<std::vector<AxisTaps>> PadTaps(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const Border border, BorderOf(spec));
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<Padding> paddings, PaddingsOf(spec));
  std::vector<AxisTaps> taps;
  for (size_t axis = 0; axis < paddings.size(); ++axis) {
    const auto [before, after] = paddings[axis];
    CKPLAN_RETURN_IF_ERROR(JudgePadding(spec, paddings[axis], axis));
    taps.push_back(PaddedTaps(border, spec.input(0).dims[axis], before, after));
  }
  return taps;
}

// The shapes alone determine the taps: the middle stays in the middle, and an odd remainder goes to
// the end.
std::vector<AxisTaps> CenterTaps(const OpSpec& spec) {
  std::vector<AxisTaps> taps;
  for (size_t axis = 0; axis < spec.input(0).dims.size(); ++axis) {
    const int64_t input = spec.input(0).dims[axis];
    const int64_t more = spec.output(0).dims[axis] - input;
    const int64_t before = more / 2;
    taps.push_back(PaddedTaps(Border::kConstant, input, before, more - before));
  }
  return taps;
}

}  // namespace

Result<PadShape> ReadPadShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireTapAxes(spec));
  if (spec.type == "CenterCropPad") return PadShape{CenterTaps(spec)};
  PadShape shape;
  CKPLAN_ASSIGN_OR_RETURN(shape.axes, PadTaps(spec));
  shape.value = static_cast<float>(spec.Float("value", 0));
  const Operand& value = spec.input(2);
  shape.has_value_input = value.is_present;
  if (!value.is_present) return shape;
  CKPLAN_RETURN_IF_ERROR(RequireElements(spec, value, "its constant value", 1));
  CKPLAN_RETURN_IF_ERROR(RequireType(spec, value, "its constant value", spec.input(0).type));
  return shape;
}

std::span<const FamilyRow> PadFamily() {
  static constexpr FamilyRow kRows[] = {
      {"Pad", JudgeBy<ReadPadShape>, "pads must be known before the step"},
      {"CenterCropPad", JudgeBy<ReadPadShape>},
  };
  return kRows;
}

}  // namespace ckplan
