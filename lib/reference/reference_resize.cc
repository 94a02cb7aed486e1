// Resize and Pad, one output element after the other.
#include <algorithm>
#include <cmath>

#include "lib/reference/reference.h"

namespace ckplan::reference {

namespace {

struct Tap {
  int64_t index;
  double weight;
};
using Taps = std::vector<Tap>;  // Of one index of an axis of the output; empty: a given value.

// Weighted sums over all combinations of the axes' taps.
double Combine(const Tensor& x, const std::vector<const Taps*>& taps, size_t axis, int64_t offset) {
  if (axis == taps.size()) return x[offset];
  double sum = 0;
  for (const Tap& tap : *taps[axis]) {
    sum += tap.weight * Combine(x, taps, axis + 1, offset * x.dims[axis] + tap.index);
  }
  return sum;
}

void Apply(const Tensor& x, const std::vector<std::vector<Taps>>& axes, double fill, Tensor& y) {
  ForEach(y.dims, [&](const Index& index, int64_t i) {
    std::vector<const Taps*> taps;
    bool has_all = true;
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      taps.push_back(&axes[axis][static_cast<size_t>(index[axis])]);
      has_all = has_all && !taps.back()->empty();
    }
    y[i] = has_all ? Combine(x, taps, 0, 0) : fill;
  });
}

// ---- Resize -------------------------------------------------------------------------------------

struct ResizedAxis {
  int64_t input = 0, output = 0;
  double scale = 1, begin = 0, end = 1;
};

double Original(const std::string& mode, const ResizedAxis& axis, double x) {
  const double output_width = axis.scale * static_cast<double>(axis.input);
  const auto input_width = static_cast<double>(axis.input);
  if (mode == "align_corners") {
    return output_width == 1 ? 0 : x * (input_width - 1) / (output_width - 1);
  }
  if (mode == "asymmetric") return x / axis.scale;
  if (mode == "tf_crop_and_resize") {
    const double start = axis.begin * (input_width - 1);
    if (output_width == 1) return start + (axis.end - axis.begin) * (input_width - 1) / 2;
    return start + x * (axis.end - axis.begin) * (input_width - 1) / (output_width - 1);
  }
  if (mode == "pytorch_half_pixel" && output_width == 1) return -0.5;
  double offset = 0;
  if (mode == "half_pixel_symmetric") {
    offset = input_width / 2 * (1 - static_cast<double>(axis.output) / output_width);
  }
  return offset + (x + 0.5) / axis.scale - 0.5;
}

double Kernel(const std::string& mode, double a, double x) {
  x = std::abs(x);
  if (mode == "linear") return x < 1 ? 1 - x : 0;
  if (x <= 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
  return x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a : 0;
}

Taps NearestTap(const OpSpec& spec, double x, int64_t input) {
  const bool is_old = spec.type == "Upsample" || spec.opset < 11;
  const std::string mode = spec.String("nearest_mode", is_old ? "floor" : "round_prefer_floor");
  double index = mode == "round_prefer_floor" ? std::ceil(x - 0.5) : std::floor(x + 0.5);
  if (mode == "floor") index = std::floor(x);
  if (mode == "ceil") index = std::ceil(x);
  return {{std::clamp<int64_t>(static_cast<int64_t>(index), 0, input - 1), 1.0}};
}

Taps TapsAt(const OpSpec& spec, const ResizedAxis& axis, int64_t index) {
  const bool is_old = spec.type == "Upsample" || spec.opset < 11;
  const std::string coordinates =
      spec.String("coordinate_transformation_mode", is_old ? "asymmetric" : "half_pixel");
  const double x = Original(coordinates, axis, static_cast<double>(index));
  const auto last = static_cast<double>(axis.input - 1);
  if (coordinates == "tf_crop_and_resize" && (x < 0 || x > last)) return {};
  std::string mode = spec.String("mode", "nearest");
  if (mode == "nearest") return NearestTap(spec, x, axis.input);
  if (mode != "cubic") mode = "linear";
  const double stretch = spec.Int("antialias", 0) != 0 ? std::min(1.0, axis.scale) : 1.0;
  Taps taps;
  double sum = 0;
  // Far more than any filter reaches.
  const auto reach = static_cast<int64_t>(4 / stretch) + 2;
  for (int64_t i = static_cast<int64_t>(x) - reach; i <= static_cast<int64_t>(x) + reach; ++i) {
    const bool is_outside = i < 0 || i >= axis.input;
    if (is_outside && spec.Int("exclude_outside", 0) != 0) continue;
    const double distance = (static_cast<double>(i) - x) * stretch;
    const double weight = Kernel(mode, spec.Float("cubic_coeff_a", -0.75), distance);
    if (weight != 0) taps.push_back({std::clamp<int64_t>(i, 0, axis.input - 1), weight});
    sum += weight;
  }
  for (Tap& tap : taps) tap.weight /= sum;
  return taps;
}

// Scales, sizes and regions from whichever operand or attribute the opset has them in.
std::vector<ResizedAxis> AxesOf(const OpSpec& spec, std::span<const Tensor> inputs,
                                const Tensor& y) {
  const Tensor& x = inputs[0];
  std::vector<ResizedAxis> axes;
  for (size_t i = 0; i < x.dims.size(); ++i) axes.push_back({x.dims[i], y.dims[i]});
  std::vector<size_t> resized;
  for (const int64_t axis : spec.Ints("axes")) {
    resized.push_back(static_cast<size_t>(axis < 0 ? axis + x.rank() : axis));
  }
  for (size_t i = 0; !spec.Has("axes") && i < axes.size(); ++i) resized.push_back(i);

  std::vector<double> scales;
  const size_t position = spec.type == "Upsample" || spec.opset < 11 ? 1 : 2;
  if (inputs.size() > position && inputs[position].is_present) scales = inputs[position].values;
  if (const auto found = spec.attributes.find("scales"); found != spec.attributes.end()) {
    scales = std::get<std::vector<double>>(found->second);
  }
  if (scales.empty()) {
    for (size_t i = 0; i < resized.size(); ++i) {
      scales.push_back(inputs[3][static_cast<int64_t>(i)] /
                       static_cast<double>(axes[resized[i]].input));
    }
    const std::string policy = spec.String("keep_aspect_ratio_policy", "stretch");
    const auto [least, most] = std::minmax_element(scales.begin(), scales.end());
    const double common = policy == "not_larger" ? *least : *most;
    if (policy != "stretch") scales.assign(scales.size(), common);
  }
  for (size_t i = 0; i < resized.size(); ++i) {
    ResizedAxis& axis = axes[resized[i]];
    axis.scale = scales[i];
    if (spec.String("coordinate_transformation_mode", "") != "tf_crop_and_resize") continue;
    axis.begin = inputs[1].values[i];
    axis.end = inputs[1].values[i + resized.size()];
  }
  return axes;
}

void Resize(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  std::vector<std::vector<Taps>> taps;
  for (const ResizedAxis& axis : AxesOf(spec, inputs, outputs[0])) {
    std::vector<Taps>& own = taps.emplace_back();
    for (int64_t i = 0; i < axis.output; ++i) own.push_back(TapsAt(spec, axis, i));
  }
  Apply(inputs[0], taps, spec.Float("extrapolation_value", 0), outputs[0]);
}

// ---- Pad ----------------------------------------------------------------------------------------

// By steps from outside to inside: each turns at the edges, or jumps.
Taps PaddedTap(const std::string& mode, int64_t at, int64_t first, int64_t last) {
  const int64_t size = last - first + 1;
  while (at < first || at > last) {
    if (mode == "constant") return {};
    if (mode == "edge") at = at < first ? first : last;
    if (mode == "wrap") at += at < first ? size : -size;
    if (mode == "reflect") at = at < first ? 2 * first - at : 2 * last - at;
  }
  return {{at, 1.0}};
}

void Pad(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  std::vector<double> pads;
  for (const char* name : {"pads", "paddings"}) {
    for (const int64_t pad : spec.Ints(name)) pads.push_back(static_cast<double>(pad));
  }
  if (inputs.size() > 1) pads = inputs[1].values;
  std::vector<int64_t> before(x.dims.size(), 0), after(x.dims.size(), 0);
  for (size_t i = 0; i < pads.size() / 2; ++i) {
    size_t axis = i;
    if (inputs.size() > 3) {
      const auto listed = static_cast<int64_t>(inputs[3].values[i]);
      axis = static_cast<size_t>(listed < 0 ? listed + x.rank() : listed);
    }
    before[axis] = static_cast<int64_t>(pads[i]);
    after[axis] = static_cast<int64_t>(pads[i + pads.size() / 2]);
  }
  std::vector<std::vector<Taps>> taps;
  for (size_t axis = 0; axis < x.dims.size(); ++axis) {
    const int64_t first = std::max<int64_t>(0, -before[axis]);
    const int64_t last = x.dims[axis] - 1 - std::max<int64_t>(0, -after[axis]);
    std::vector<Taps>& own = taps.emplace_back();
    for (int64_t i = 0; i < outputs[0].dims[axis]; ++i) {
      own.push_back(PaddedTap(spec.String("mode", "constant"), i - before[axis], first, last));
    }
  }
  const bool has_value = inputs.size() > 2 && inputs[2].is_present;
  Apply(x, taps, has_value ? inputs[2][0] : spec.Float("value", 0), outputs[0]);
}

void CenterCropPad(const OpSpec&, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  ForEach(outputs[0].dims, [&](const Index& index, int64_t i) {
    Index from = index;
    bool is_inside = true;
    for (size_t axis = 0; axis < from.size(); ++axis) {
      const int64_t out = outputs[0].dims[axis];
      const int64_t in = x.dims[axis];
      from[axis] += out < in ? (in - out) / 2 : -((out - in) / 2);
      is_inside = is_inside && from[axis] >= 0 && from[axis] < in;
    }
    outputs[0][i] = is_inside ? x[Offset(x, from)] : 0;
  });
}

constexpr FunctionRow kRows[] = {
    {"Resize", Resize},
    {"Upsample", Resize},
    {"Pad", Pad},
    {"CenterCropPad", CenterCropPad},
};

}  // namespace

std::span<const FunctionRow> ResizeFunctions() { return kRows; }

}  // namespace ckplan::reference
