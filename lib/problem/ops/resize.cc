#include "lib/problem/ops/resize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>

#include "lib/problem/ops/axes.h"
#include "lib/problem/ops/judge.h"

namespace ckplan {

namespace {

enum class Filter { kNearest, kLinear, kCubic };

// Attributes that all axes share.
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

// Maps a coordinate of the output to a coordinate of the input; names and formulas are ONNX's.
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

int64_t NearestIndex(const Rules& rules, double x) {
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

// Adds the weights of the inputs around x. Inputs beyond the edge take the value at the edge.
void AddInterpolation(const Rules& rules, const Axis& axis, double x, AxisTaps& taps) {
  // Antialiasing stretches the filter, so that inputs between two outputs still count.
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
        taps.Add(std::clamp<int64_t>(NearestIndex(rules, x), 0, axis.input - 1), 1);
      } else {
        AddInterpolation(rules, axis, x, taps);
      }
    }
    taps.Close();
  }
  return taps;
}

// ---- What the opsets say ------------------------------------------------------------------------

template <typename Names>
Result<Done> RequireOneOf(const OpSpec& spec, std::string_view attribute, const std::string& value,
                          const Names& names) {
  if (std::find(std::begin(names), std::end(names), value) != std::end(names)) return Done{};
  return UnsupportedOp(spec, fmt::format("it has no kernel for {} \"{}\"", attribute, value));
}

Result<Done> JudgeRules(const OpSpec& spec, const Rules& rules) {
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
  // Before opset 11 there was only one coordinate transformation and one rounding of the nearest.
  const bool is_old = spec.type == "Upsample" || spec.opset < 11;
  rules.coordinates =
      spec.String("coordinate_transformation_mode", is_old ? "asymmetric" : "half_pixel");
  rules.nearest = spec.String("nearest_mode", is_old ? "floor" : "round_prefer_floor");
  rules.is_antialiased = spec.Int("antialias", 0) != 0;
  rules.excludes_outside = spec.Int("exclude_outside", 0) != 0;
  rules.cubic_a = spec.Float("cubic_coeff_a", -0.75);
  CKPLAN_RETURN_IF_ERROR(JudgeRules(spec, rules));
  if (mode == "nearest") return rules;
  if (mode != "linear" && mode != "bilinear" && mode != "cubic") {
    return UnsupportedOp(spec, "it has no kernel for mode \"" + mode + "\"");
  }
  CKPLAN_RETURN_IF_ERROR(RequireFloat(spec, spec.input(0), "its input, which is interpolated,"));
  rules.filter = mode == "cubic" ? Filter::kCubic : Filter::kLinear;
  return rules;
}

// Returns the contents of a float input, which must be known, for each resized axis. The result is
// empty if the input is absent or has no elements.
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

// Computes missing scales from the sizes of the output; a kept aspect ratio gives all axes one
// scale.
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

// Returns the input's axes that the entries of scales, sizes and region apply to, in their order.
Result<std::vector<size_t>> ResizedAxes(const OpSpec& spec) {
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

// Returns whether the size of the output follows from the scale. Given scales round it down, and
// ONNX multiplies them in single precision; scales that follow from sizes round to the nearest.
bool Fits(const Axis& axis, bool has_scales) {
  const double slack = 1e-6 * std::max(1.0, axis.scaled());
  const double more = static_cast<double>(axis.output) - axis.scaled();
  return has_scales ? more <= slack && more > -1 - slack : std::abs(more) <= 0.5 + slack;
}

Result<Done> JudgeAxes(const OpSpec& spec, const std::vector<Axis>& axes, bool has_scales,
                       bool is_crop) {
  constexpr double kMax = 1 << 24;  // Coordinates of a region up to this size are exact.
  for (size_t i = 0; i < axes.size(); ++i) {
    const Axis& axis = axes[i];
    // Comparisons are negated so that a NaN is refused.
    if (!(axis.scale > 0) || !std::isfinite(axis.scale)) {
      return InvalidOp(spec, fmt::format("its scale of axis {} is {}", i, axis.scale));
    }
    if (!is_crop && !Fits(axis, has_scales)) {
      return InvalidOp(spec, fmt::format("its output has {} elements along axis {}; {} elements "
                                         "scaled by {} are {}",
                                         axis.output, i, axis.input, axis.scale, axis.scaled()));
    }
    const bool is_near = std::abs(axis.roi_begin) <= kMax && std::abs(axis.roi_end) <= kMax;
    if (is_crop && !(is_near && axis.scale * kMax >= 1 && axis.scale <= kMax)) {
      return UnsupportedOp(spec, fmt::format("its region [{}, {}] of axis {}, scaled by {}, is "
                                             "beyond what its kernel computes",
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
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<size_t> resized, ResizedAxes(spec));
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
  CKPLAN_RETURN_IF_ERROR(JudgeAxes(spec, axes, !scales.empty(), is_crop));
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
      {"Resize", JudgeBy<ReadResizeShape>,
       "scales, sizes and regions must be known before the step"},
      {"Upsample", JudgeBy<ReadResizeShape>, "scales must be known before the step"},
  };
  return kRows;
}

}  // namespace ckplan
