#include "lib/problem/ops/pad_resize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>

#include "lib/base/units.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_checks.h"

namespace ckplan {

void AxisTaps::Add(int64_t input_index, double tap_weight) {
  index.push_back(input_index);
  weight.push_back(static_cast<float>(tap_weight));
}

bool AxisTaps::IsIdentity() const {
  if (output_size() != input_size || static_cast<int64_t>(index.size()) != input_size) return false;
  for (size_t i = 0; i < index.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (begin[i] != at || index[i] != at || weight[i] != 1) return false;
  }
  return true;
}

AxisTaps AxisTaps::Transposed() const {
  AxisTaps result;
  result.input_size = output_size();
  std::vector<int64_t> count(static_cast<size_t>(input_size) + 1, 0);
  for (const int64_t to : index) ++count[static_cast<size_t>(to) + 1];
  for (size_t i = 1; i < count.size(); ++i) count[i] += count[i - 1];
  result.begin = count;
  result.index.resize(index.size());
  result.weight.resize(index.size());
  for (size_t i = 0; i + 1 < begin.size(); ++i) {
    for (int64_t tap = begin[i]; tap < begin[i + 1]; ++tap) {
      const auto from = static_cast<size_t>(tap);
      const auto to = static_cast<size_t>(count[static_cast<size_t>(index[from])]++);
      result.index[to] = static_cast<int64_t>(i);
      result.weight[to] = weight[from];
    }
  }
  return result;
}

AxisTaps IdentityTaps(int64_t size) {
  AxisTaps taps;
  taps.input_size = size;
  for (int64_t i = 0; i < size; ++i) {
    taps.Add(i, 1);
    taps.Close();
  }
  return taps;
}

std::vector<AxisTaps> Transposed(const std::vector<AxisTaps>& axes) {
  std::vector<AxisTaps> result;
  for (const AxisTaps& axis : axes) result.push_back(axis.Transposed());
  return result;
}

std::vector<AxisTaps> MergeIdentities(const std::vector<AxisTaps>& axes) {
  std::vector<AxisTaps> merged;
  bool was_identity = false;
  for (const AxisTaps& axis : axes) {
    const bool is_identity = axis.IsIdentity();
    if (is_identity && was_identity) {
      merged.back() = IdentityTaps(merged.back().input_size * axis.input_size);
    } else {
      merged.push_back(axis);
    }
    was_identity = is_identity;
  }
  if (merged.empty()) merged.push_back(IdentityTaps(1));
  return merged;
}

namespace {

enum class Border { kConstant, kEdge, kReflect, kWrap };

// Returns the index in [0, size) of the element that fills an index outside, or -1 for a constant.
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

// Negative padding crops. Reflection does not reach cropped elements.
AxisTaps TapsOfPadding(Border border, int64_t input, int64_t before, int64_t after) {
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

// The elements added before and after an axis; negative numbers crop.
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

Result<Done> ValidatePadding(const OpSpec& spec, const Padding& padding, size_t axis) {
  const int64_t input = spec.input(0).dims[axis];
  const int64_t output = spec.output(0).dims[axis];
  const std::optional<int64_t> longer = CheckedAdd(input, padding.before);
  if (longer.has_value() && CheckedAdd(*longer, padding.after) == output &&
      padding.before >= -input && padding.after >= -input) {
    return Done{};
  }
  return InvalidOp(spec, fmt::format("pads {} and {} of axis {} do not produce {} elements from {}",
                                     padding.before, padding.after, axis, output, input));
}

Result<std::vector<AxisTaps>> PadTaps(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const Border border, BorderOf(spec));
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<Padding> paddings, PaddingsOf(spec));
  std::vector<AxisTaps> taps;
  for (size_t axis = 0; axis < paddings.size(); ++axis) {
    const auto [before, after] = paddings[axis];
    CKPLAN_RETURN_IF_ERROR(ValidatePadding(spec, paddings[axis], axis));
    taps.push_back(TapsOfPadding(border, spec.input(0).dims[axis], before, after));
  }
  return taps;
}

// The shapes determine the taps: the middle stays in the middle, and an odd remainder goes to the
// end.
std::vector<AxisTaps> CenterTaps(const OpSpec& spec) {
  std::vector<AxisTaps> taps;
  for (size_t axis = 0; axis < spec.input(0).dims.size(); ++axis) {
    const int64_t input = spec.input(0).dims[axis];
    const int64_t more = spec.output(0).dims[axis] - input;
    const int64_t before = more / 2;
    taps.push_back(TapsOfPadding(Border::kConstant, input, before, more - before));
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
      {"Pad", ValidateBy<ReadPadShape>, "pads must be known before the step"},
      {"CenterCropPad", ValidateBy<ReadPadShape>},
  };
  return kRows;
}

namespace {

enum class Filter { kNearest, kLinear, kCubic };

// The attributes that all axes share.
struct Rules {
  Filter filter = Filter::kNearest;
  std::string coordinates, nearest;
  bool is_antialiased = false, excludes_outside = false;
  double cubic_a = -0.75;
};

// The sizes and the scale of one axis.
struct Axis {
  int64_t input = 1, output = 1;
  double scale = 1;
  double roi_begin = 0, roi_end = 1;

  double scaled() const {
    return scale * static_cast<double>(input);
  }  // The output's size before rounding.
};

bool IsCrop(const Rules& rules) { return rules.coordinates == "tf_crop_and_resize"; }

// Maps an output coordinate to an input coordinate, with ONNX's names and formulas.
double OriginalCoordinate(const Rules& rules, const Axis& axis, double x) {
  const auto last = static_cast<double>(axis.input - 1);
  if (rules.coordinates == "align_corners") {
    return axis.scaled() == 1 ? 0 : x * last / (axis.scaled() - 1);
  }
  if (rules.coordinates == "asymmetric") return x / axis.scale;
  if (IsCrop(rules)) {
    const double length = (axis.roi_end - axis.roi_begin) * last;
    const double from_begin = axis.scaled() == 1 ? length / 2 : x * length / (axis.scaled() - 1);
    return axis.roi_begin * last + from_begin;
  }
  if (rules.coordinates == "pytorch_half_pixel" && axis.scaled() == 1) return -0.5;
  const double half_pixel = (x + 0.5) / axis.scale - 0.5;
  if (rules.coordinates != "half_pixel_symmetric") return half_pixel;
  const double adjustment = static_cast<double>(axis.output) / axis.scaled();
  return static_cast<double>(axis.input) / 2 * (1 - adjustment) + half_pixel;
}

int64_t RoundToIndex(const Rules& rules, double x) {
  const double below = std::floor(x);
  const double ratio = x - below;
  const bool goes_up = rules.nearest == "ceil"                ? ratio > 0
                       : rules.nearest == "floor"             ? false
                       : rules.nearest == "round_prefer_ceil" ? ratio >= 0.5
                                                              : ratio > 0.5;
  return static_cast<int64_t>(below) + (goes_up ? 1 : 0);
}

double Weight(const Rules& rules, double distance) {
  const double d = std::abs(distance);
  const double a = rules.cubic_a;
  if (rules.filter == Filter::kLinear) return std::max(0.0, 1 - d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

// Adds the weights of the inputs around x. Inputs beyond the edge have the value at the edge.
void AddInterpolation(const Rules& rules, const Axis& axis, double x, AxisTaps& taps) {
  // Antialiasing stretches the filter so that it covers inputs between two outputs.
  const double stretch = rules.is_antialiased ? std::min(axis.scale, 1.0) : 1.0;
  const double support = (rules.filter == Filter::kLinear ? 1 : 2) / stretch;
  const auto first = static_cast<int64_t>(std::floor(x - support)) + 1;
  const auto last = static_cast<int64_t>(std::ceil(x + support)) - 1;
  const auto is_used = [&](int64_t i) {
    return !rules.excludes_outside || (i >= 0 && i < axis.input);
  };
  double sum = 0;
  for (int64_t i = first; i <= last; ++i) {
    if (is_used(i)) sum += Weight(rules, (static_cast<double>(i) - x) * stretch);
  }
  const bool is_normal = rules.excludes_outside || stretch < 1;
  for (int64_t i = first; i <= last; ++i) {
    const double weight = Weight(rules, (static_cast<double>(i) - x) * stretch);
    if (weight == 0 || !is_used(i)) continue;
    taps.Add(std::clamp<int64_t>(i, 0, axis.input - 1), is_normal ? weight / sum : weight);
  }
}

AxisTaps TapsOf(const Rules& rules, const Axis& axis) {
  const bool is_whole = axis.roi_begin == 0 && axis.roi_end == 1;
  if (axis.scale == 1 && axis.input == axis.output && is_whole) return IdentityTaps(axis.input);
  AxisTaps taps;
  taps.input_size = axis.input;
  for (int64_t i = 0; i < axis.output; ++i) {
    const double x = OriginalCoordinate(rules, axis, static_cast<double>(i));
    const bool is_outside = x < 0 || x > static_cast<double>(axis.input - 1);
    if (axis.input > 0 && !(IsCrop(rules) && is_outside)) {
      if (rules.filter == Filter::kNearest) {
        taps.Add(std::clamp<int64_t>(RoundToIndex(rules, x), 0, axis.input - 1), 1);
      } else {
        AddInterpolation(rules, axis, x, taps);
      }
    }
    taps.Close();
  }
  return taps;
}

// ---- Attributes and inputs by opset -------------------------------------------------------------

template <typename Names>
Result<Done> RequireOneOf(const OpSpec& spec, std::string_view attribute, const std::string& value,
                          const Names& names) {
  if (std::find(std::begin(names), std::end(names), value) != std::end(names)) return Done{};
  return UnsupportedOp(spec, fmt::format("it has no kernel for {} \"{}\"", attribute, value));
}

Result<Done> ValidateRules(const OpSpec& spec, const Rules& rules) {
  constexpr std::string_view kCoordinates[] = {"half_pixel",         "half_pixel_symmetric",
                                               "pytorch_half_pixel", "align_corners",
                                               "asymmetric",         "tf_crop_and_resize"};
  constexpr std::string_view kNearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                           "ceil"};
  CKPLAN_RETURN_IF_ERROR(
      RequireOneOf(spec, "coordinate_transformation_mode", rules.coordinates, kCoordinates));
  return RequireOneOf(spec, "nearest_mode", rules.nearest, kNearest);
}

Result<Rules> RulesOf(const OpSpec& spec) {
  Rules rules;
  const std::string mode = spec.String("mode", "nearest");
  // Before opset 11, these were the only coordinate transformation and rounding.
  const bool is_old = spec.type == "Upsample" || spec.opset < 11;
  rules.coordinates =
      spec.String("coordinate_transformation_mode", is_old ? "asymmetric" : "half_pixel");
  rules.nearest = spec.String("nearest_mode", is_old ? "floor" : "round_prefer_floor");
  rules.is_antialiased = spec.Int("antialias", 0) != 0;
  rules.excludes_outside = spec.Int("exclude_outside", 0) != 0;
  rules.cubic_a = spec.Float("cubic_coeff_a", -0.75);
  CKPLAN_RETURN_IF_ERROR(ValidateRules(spec, rules));
  if (mode == "nearest") return rules;
  if (mode != "linear" && mode != "bilinear" && mode != "cubic") {
    return UnsupportedOp(spec, "it has no kernel for mode \"" + mode + "\"");
  }
  CKPLAN_RETURN_IF_ERROR(RequireFloat(spec, spec.input(0), "its input, which is interpolated,"));
  rules.filter = mode == "cubic" ? Filter::kCubic : Filter::kLinear;
  return rules;
}

// Returns the contents of a float input, which must be known; empty if the input is absent.
Result<std::vector<double>> KnownReals(const OpSpec& spec, size_t input, const char* what) {
  const Operand& operand = spec.input(input);
  if (!operand.is_present || operand.elements() == 0) return std::vector<double>();
  if (!operand.known.has_value()) {
    return UnsupportedOp(spec, std::string("its ") + what + " are computed during the step");
  }
  return operand.known->reals;
}

Result<std::vector<double>> ScalesOf(const OpSpec& spec) {
  if (const auto found = spec.attributes.find("scales"); found != spec.attributes.end()) {
    if (const auto* list = std::get_if<std::vector<double>>(&found->second)) return *list;
  }
  const bool has_roi = spec.type == "Resize" && spec.opset >= 11;
  return KnownReals(spec, has_roi ? 2 : 1, "scales");
}

// Computes missing scales from the output's sizes. All axes share a scale if the aspect ratio is
// kept.
void ScaleBySizes(const OpSpec& spec, const std::vector<size_t>& resized, const Dims& sizes,
                  std::vector<Axis>& axes) {
  const std::string policy = spec.String("keep_aspect_ratio_policy", "stretch");
  double common = 0;
  for (size_t i = 0; i < resized.size(); ++i) {
    Axis& axis = axes[resized[i]];
    const int64_t size = i < sizes.size() ? sizes[i] : axis.output;
    axis.scale = static_cast<double>(size) / static_cast<double>(std::max<int64_t>(1, axis.input));
    const bool is_larger = axis.scale > common;
    if (i == 0 || (policy == "not_larger") != is_larger) common = axis.scale;
  }
  if (policy == "stretch") return;
  for (const size_t axis : resized) axes[axis].scale = common;
}

// Returns the axes to which the entries of scales, sizes and region apply, in order.
Result<std::vector<size_t>> ReadResizedAxes(const OpSpec& spec) {
  const size_t rank = spec.input(0).dims.size();
  std::vector<size_t> resized;
  for (size_t i = 0; i < rank && !spec.Has("axes"); ++i) resized.push_back(i);
  for (const int64_t axis : spec.Ints("axes")) {
    CKPLAN_ASSIGN_OR_RETURN(const size_t normal, NormalAxis(spec, axis, rank));
    resized.push_back(normal);
  }
  return resized;
}

Result<Done> RequireCount(const OpSpec& spec, std::string_view what, size_t count,
                          size_t expected) {
  if (count == expected) return Done{};
  return InvalidOp(spec, fmt::format("it has {} {} instead of {}", count, what, expected));
}

// Returns true if the output's size matches the scale. With given scales, sizes are rounded down,
// and ONNX multiplies in single precision; scales computed from sizes round to the nearest.
bool Fits(const Axis& axis, bool has_scales) {
  const double slack = 1e-6 * std::max(1.0, axis.scaled());
  const double more = static_cast<double>(axis.output) - axis.scaled();
  return has_scales ? more <= slack && more > -1 - slack : std::abs(more) <= 0.5 + slack;
}

Result<Done> ValidateAxes(const OpSpec& spec, const std::vector<Axis>& axes, bool has_scales,
                          bool is_crop) {
  constexpr double kMax = 1 << 24;  // Region coordinates up to this size are exact.
  for (size_t i = 0; i < axes.size(); ++i) {
    const Axis& axis = axes[i];
    // The negated comparison also refuses NaN.
    if (!(axis.scale > 0) || !std::isfinite(axis.scale)) {
      return InvalidOp(spec, fmt::format("its scale along axis {} is {}", i, axis.scale));
    }
    if (!is_crop && !Fits(axis, has_scales)) {
      return InvalidOp(spec, fmt::format("its output has {} elements along axis {}, but {} "
                                         "elements scaled by {} give {}",
                                         axis.output, i, axis.input, axis.scale, axis.scaled()));
    }
    const bool is_near = std::abs(axis.roi_begin) <= kMax && std::abs(axis.roi_end) <= kMax;
    if (is_crop && !(is_near && axis.scale * kMax >= 1 && axis.scale <= kMax)) {
      return UnsupportedOp(spec, fmt::format("its region [{}, {}] of axis {}, scaled by {}, is "
                                             "out of range for its kernel",
                                             axis.roi_begin, axis.roi_end, i, axis.scale));
    }
  }
  return Done{};
}

Result<Done> ReadRegion(const OpSpec& spec, const std::vector<size_t>& resized,
                        std::vector<Axis>& axes) {
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<double> roi, KnownReals(spec, 1, "regions"));
  CKPLAN_RETURN_IF_ERROR(RequireCount(spec, "bounds of a region", roi.size(), 2 * resized.size()));
  for (size_t i = 0; i < resized.size(); ++i) {
    axes[resized[i]].roi_begin = roi[i];
    axes[resized[i]].roi_end = roi[i + resized.size()];
  }
  return Done{};
}

Result<std::vector<Axis>> AxesOf(const OpSpec& spec, bool is_crop) {
  const Dims& dims = spec.input(0).dims;
  std::vector<Axis> axes(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    axes[i].input = dims[i];
    axes[i].output = spec.output(0).dims[i];
  }
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<size_t> resized, ReadResizedAxes(spec));
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<double> scales, ScalesOf(spec));
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<Dims> sizes, KnownInts(spec, 3, "sizes"));
  if (scales.empty()) {
    const Dims known = sizes.value_or(Dims());
    if (known.empty() && !resized.empty())
      return InvalidOp(spec, "it has neither scales nor sizes");
    CKPLAN_RETURN_IF_ERROR(RequireCount(spec, "sizes", known.size(), resized.size()));
    ScaleBySizes(spec, resized, known, axes);
  } else {
    CKPLAN_RETURN_IF_ERROR(RequireCount(spec, "scales", scales.size(), resized.size()));
    for (size_t i = 0; i < scales.size(); ++i) axes[resized[i]].scale = scales[i];
  }
  if (is_crop) CKPLAN_RETURN_IF_ERROR(ReadRegion(spec, resized, axes));
  CKPLAN_RETURN_IF_ERROR(ValidateAxes(spec, axes, !scales.empty(), is_crop));
  return axes;
}

}  // namespace

Result<ResizeShape> ReadResizeShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireTapAxes(spec));
  CKPLAN_ASSIGN_OR_RETURN(const Rules rules, RulesOf(spec));
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<Axis> axes, AxesOf(spec, IsCrop(rules)));
  ResizeShape shape;
  for (const Axis& axis : axes) shape.axes.push_back(TapsOf(rules, axis));
  shape.selects = rules.filter == Filter::kNearest;
  if (IsCrop(rules)) shape.fill = static_cast<float>(spec.Float("extrapolation_value", 0));
  return shape;
}

std::span<const FamilyRow> ResizeFamily() {
  static constexpr FamilyRow kRows[] = {
      {"Resize", ValidateBy<ReadResizeShape>,
       "scales, sizes and regions must be known before the step"},
      {"Upsample", ValidateBy<ReadResizeShape>, "scales must be known before the step"},
  };
  return kRows;
}

}  // namespace ckplan
