// Pad and CenterCropPad.
#include <algorithm>
#include <cmath>
#include <string>

#include "lib/executor/testing/op_case.h"
#include "lib/executor/testing/tensor.h"

namespace ckplan::reference {

namespace {

// Weighted sums of a few elements along each axis.
struct Tap {
  int64_t index;
  double weight;
};

// The taps of one output index along an axis. Without taps, the element gets a fill value.
using Taps = std::vector<Tap>;

// Returns the weighted sum over all combinations of the axes' taps.
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

// ---- Pad ----------------------------------------------------------------------------------------

// Moves an outside position inside step by step, reflecting it at an edge or wrapping it around.
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

constexpr FunctionRow kPadReferences[] = {
    {"Pad", Pad},
    {"CenterCropPad", CenterCropPad},
};

constexpr CaseRow kPadCases[] = {
    {"Pad", "f2x3 i4=[0,1,2,3] -> f4x7"},
    {"Pad", "f2x3 i4=[0,1,2,3] fs@[1.5] -> f4x7", "mode='constant'"},
    {"Pad", "f2x3 i4=[1,-1,0,2] -> f3x4"},
    {"Pad", "f5x6 i4=[-1,-2,-1,-1] -> f3x3"},
    {"Pad", "f4x5 i4=[2,3,1,4] -> f7x12", "mode='reflect'"},
    {"Pad", "f3x3 i4=[0,7,0,8] -> f3x18", "mode='reflect'"},
    {"Pad", "f4x5 i4=[2,3,1,4] -> f7x12", "mode='edge'"},
    {"Pad", "f4x5 i4=[2,7,1,6] -> f7x18", "mode='wrap'"},
    {"Pad", "f5x6 i4=[-1,2,2,-1] -> f6x7", "mode='reflect'"},
    {"Pad", "f5x6 i4=[-1,2,2,-1] -> f6x7", "mode='wrap'"},
    {"Pad", "f2x3x4x5 i4=[0,1,2,3] _ i2=[2,-1] -> f2x3x6x9", "mode='reflect'"},
    {"Pad", "f1x7x7x12 i8=[0,0,0,0,0,3,2,0] fs@[0] -> f1x10x9x12"},
    {"Pad", "i2x3(-9..9) i4=[0,1,2,3] is@[-5] -> i4x7"},
    {"Pad", "b2x3 i4=[0,1,0,1] bs@[1] -> b2x5"},
    {"Pad@2", "f2x3 -> f4x7", "mode='constant' pads=[0,1,2,3] value=2.5"},
    {"Pad@2", "f3x4 -> f5x6", "mode='reflect' pads=[1,1,1,1]"},
    {"Pad@1", "f2x3 -> f2x5", "paddings=[0,1,0,1]"},
    {"CenterCropPad", "f5x6 i2=[3,9] -> f3x9"},
    {"CenterCropPad", "f4x7x2 i2=[7,4] -> f7x4x2", "axes=[0,1]"},
};

}  // namespace

std::span<const FunctionRow> PadReferences() { return kPadReferences; }
std::span<const CaseRow> PadCases() { return kPadCases; }

// Resize and Upsample.

namespace {

// ---- Resize -------------------------------------------------------------------------------------

struct ResizedAxis {
  int64_t input = 0, output = 0;
  double scale = 1, begin = 0, end = 1;
};

double SourceCoordinate(const std::string& mode, const ResizedAxis& axis, double x) {
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
  const double x = SourceCoordinate(coordinates, axis, static_cast<double>(index));
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

// Reads scales, sizes and regions from the operand or attribute that the opset uses.
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
    const auto [min, max] = std::minmax_element(scales.begin(), scales.end());
    if (policy != "stretch" && !scales.empty()) {
      scales.assign(scales.size(), double{policy == "not_larger" ? *min : *max});
    }
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

constexpr FunctionRow kResizeReferences[] = {
    {"Resize", Resize},
    {"Upsample", Resize},
};

constexpr CaseRow kResizeCases[] = {
    {"Resize", "f1x2x3x4 _ f4=[1,1,2,2] -> f1x2x6x8"},
    {"Resize", "f1x2x3x4 _ f4=[1,1,2,2] -> f1x2x6x8", "mode='nearest' nearest_mode='floor'"},
    {"Resize", "f1x2x3x4 _ f4=[1,1,2.5,1.5] -> f1x2x7x6",
     "mode='nearest' nearest_mode='ceil' coordinate_transformation_mode='asymmetric'"},
    {"Resize", "f1x1x5x7 _ f4=[1,1,0.6,0.6] -> f1x1x3x4",
     "mode='nearest' nearest_mode='round_prefer_ceil'"},
    {"Resize", "f1x1x4x4 _ _ i4=[1,1,7,3] -> f1x1x7x3",
     "mode='nearest' coordinate_transformation_mode='align_corners'"},
    {"Resize", "i1x1x2x3(-9..9) _ f4=[1,1,2,2] -> i1x1x4x6", "mode='nearest'"},
    {"Resize", "f2x2x3x4 _ f4=[1,1,2,2] -> f2x2x6x8", "mode='linear'"},
    {"Resize", "f2x2x3x4 _ _ i4=[2,2,9,5] -> f2x2x9x5",
     "mode='linear' coordinate_transformation_mode='align_corners'"},
    {"Resize", "f1x2x6x6 _ _ i4=[1,2,1,1] -> f1x2x1x1",
     "mode='linear' coordinate_transformation_mode='align_corners'"},
    {"Resize", "f1x1x1x1 _ _ i4=[1,1,3,5] -> f1x1x3x5",
     "mode='linear' coordinate_transformation_mode='align_corners'"},
    {"Resize", "f1x1x4x4 _ f4=[1,1,0.6,0.6] -> f1x1x2x2",
     "mode='linear' coordinate_transformation_mode='align_corners'"},
    {"Resize", "f1x2x5x7 _ f4=[1,1,0.6,1.3] -> f1x2x3x9",
     "mode='linear' coordinate_transformation_mode='asymmetric'"},
    {"Resize", "f1x2x5x7 _ _ i4=[1,2,1,9] -> f1x2x1x9",
     "mode='linear' coordinate_transformation_mode='pytorch_half_pixel'"},
    {"Resize", "f1x1x5x7 _ f4=[1,1,2.3,0.7] -> f1x1x11x4",
     "mode='linear' coordinate_transformation_mode='half_pixel_symmetric'"},
    {"Resize", "f1x1x9x7 _ f4=[1,1,0.4,0.6] -> f1x1x3x4", "mode='linear' antialias=1"},
    {"Resize", "f1x1x9x7 _ f4=[1,1,0.4,2] -> f1x1x3x14", "mode='cubic' antialias=1", 3e-5},
    {"Resize", "f1x2x4x5 _ f4=[1,1,2,2] -> f1x2x8x10", "mode='cubic'", 3e-5},
    {"Resize", "f1x2x4x5 _ f4=[1,1,0.8,1.7] -> f1x2x3x8",
     "mode='cubic' cubic_coeff_a=-0.5 exclude_outside=1", 3e-5},
    {"Resize", "f1x2x4x5 _ _ i4=[1,2,3,8] -> f1x2x3x8",
     "mode='cubic' coordinate_transformation_mode='align_corners'", 3e-5},
    {"Resize", "f1x1x4x5 f8=[0,0,0.4,0.6,1,1,0.6,0.8] _ i4=[1,1,3,3] -> f1x1x3x3",
     "mode='linear' coordinate_transformation_mode='tf_crop_and_resize'"},
    {"Resize", "f1x1x4x5 f8=[0,0,0.4,0.6,1,1,1.2,1.7] _ i4=[1,1,3,3] -> f1x1x3x3",
     "mode='linear' coordinate_transformation_mode='tf_crop_and_resize' extrapolation_value=10.0"},
    {"Resize", "f1x1x4x5 f8=[0,0,-0.5,0.6,1,1,1.2,1.7] _ i4=[1,1,3,3] -> f1x1x3x3",
     "mode='nearest' coordinate_transformation_mode='tf_crop_and_resize' extrapolation_value=4.0"},
    {"Resize", "f1x1x4x6 _ _ i2=[7,8] -> f1x1x7x8", "mode='linear' axes=[2,-1]"},
    {"Resize", "f1x1x4x6 _ _ i2=[7,8] -> f1x1x5x8",
     "mode='linear' axes=[2,3] keep_aspect_ratio_policy='not_larger'"},
    {"Resize", "f1x1x4x6 _ _ i2=[7,8] -> f1x1x7x11",
     "mode='linear' axes=[2,3] keep_aspect_ratio_policy='not_smaller'"},
    {"Resize", "f1x1x3x4x5 _ f5=[1,1,2,1.5,0.6] -> f1x1x6x6x3", "mode='linear'"},
    {"Resize", "f1x5x7x3 _ f4=[1,2,2,1] -> f1x10x14x3", "mode='linear'"},
    {"Resize", "f7 _ f1=[1.5] -> f10", "mode='linear'"},
    {"Resize@11", "f1x1x3x3 f0=[] f0=[] i4=[1,1,5,5] -> f1x1x5x5",
     "mode='linear' coordinate_transformation_mode='align_corners'"},
    {"Resize@10", "f1x1x3x4 f4=[1,1,2,1.5] -> f1x1x6x6", "mode='nearest'"},
    {"Resize@10", "f1x1x3x4 f4=[1,1,2,1.5] -> f1x1x6x6", "mode='linear'"},
    {"Resize", "f2x3x20x30 _ _ i4=[2,3,40,67] -> f2x3x40x67", "mode='linear'", 3e-5},
    {"Upsample@9", "f1x2x3x4 f4=[1,1,2,3] -> f1x2x6x12", "mode='nearest'"},
    {"Upsample@9", "f1x2x3x4 f4=[1,1,2,2] -> f1x2x6x8", "mode='linear'"},
    {"Upsample@7", "f1x2x3x4 -> f1x2x6x8", "mode='nearest' scales=[1.0,1.0,2.0,2.0]"},
};

}  // namespace

std::span<const FunctionRow> ResizeReferences() { return kResizeReferences; }
std::span<const CaseRow> ResizeCases() { return kResizeCases; }

}  // namespace ckplan::reference
