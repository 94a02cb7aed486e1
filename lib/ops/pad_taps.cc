#include "lib/ops/pad_taps.h"

#include <algorithm>
#include <optional>
#include <string>

#include "lib/ops/axes.h"

namespace ckplan {

namespace {

enum class Border { kConstant, kEdge, kReflect, kWrap };

// The index in [0, size) that stands for one outside; -1: none does.
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

// Negative sizes crop. What is cropped is not reflected.
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
  return UnsupportedOp(spec, "it has no kernel for mode \"" + mode + "\"");
}

}  // namespace

Result<std::vector<AxisTaps>> ReadPads(const OpSpec& spec) {
  const Dims& dims = spec.input(0).dims;
  CKPLAN_ASSIGN_OR_RETURN(const Border border, BorderOf(spec));
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<Dims> pads,
                          KnownInts(spec, 1, spec.Has("paddings") ? "paddings" : "pads"));
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<Dims> listed, KnownInts(spec, 3, "axes"));
  Dims before(dims.size(), 0), after(dims.size(), 0);
  const size_t count = listed.has_value() ? listed->size() : dims.size();
  if (!pads.has_value() || pads->size() != 2 * count) {
    return UnsupportedOp(spec, "its pads are not twice as many as its axes");
  }
  for (size_t i = 0; i < count; ++i) {
    const int64_t axis = listed.has_value() ? (*listed)[i] : static_cast<int64_t>(i);
    CKPLAN_ASSIGN_OR_RETURN(const size_t normal, NormalAxis(spec, axis, dims.size()));
    before[normal] = (*pads)[i];
    after[normal] = (*pads)[i + count];
  }
  std::vector<AxisTaps> taps;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] + before[axis] + after[axis] != spec.output(0).dims[axis]) {
      return UnsupportedOp(spec, "its pads do not lead to the shape of its output");
    }
    taps.push_back(PaddedTaps(border, dims[axis], before[axis], after[axis]));
  }
  return taps;
}

std::vector<AxisTaps> ReadCenterCropPad(const OpSpec& spec) {
  std::vector<AxisTaps> taps;
  for (size_t axis = 0; axis < spec.input(0).dims.size(); ++axis) {
    const int64_t input = spec.input(0).dims[axis];
    const int64_t more = spec.output(0).dims[axis] - input;
    const int64_t before = more / 2;
    taps.push_back(PaddedTaps(Border::kConstant, input, before, more - before));
  }
  return taps;
}

}  // namespace ckplan
