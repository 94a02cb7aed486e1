// Pad in all its modes, CenterCropPad, Resize and Upsample, using the taps of
// lib/problem/ops/pad_resize.h.
#include <type_traits>
#include <utility>
#include <vector>

#include "lib/executor/cuda/device.h"
#include "lib/executor/cuda/element_copy.h"
#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/registry.h"
#include "lib/problem/ops/pad_resize.h"

namespace ckplan::cuda {

namespace {

// Linear maps applied independently along each axis; see lib/problem/ops/pad_resize.h. Each thread
// computes one output element, looping over its taps.

// The output where there is no tap: the element at `data` or, if that is null, `value` for floats
// and 0 for integers.
struct TapFill {
  const void* data = nullptr;
  ElementType type = ElementType::kFloat32;
  float value = 0;
};

class SeparableMap {
 public:
  SeparableMap() = default;
  // `axes` has one entry per axis, none for scalars. Fails with kUnsupported if there are more axes
  // than the kernels support.
  static Result<SeparableMap> Create(const OpSpec& spec, Device& device,
                                     const std::vector<AxisTaps>& axes);

  void Run(Device& device, const void* from, ElementType from_type, void* to, ElementType to_type,
           float fill = 0) const;
  // Selects elements of any type. Each output element has at most one tap, with weight 1.
  void Select(Device& device, const void* from, ElementType from_type, void* to,
              ElementType to_type, const TapFill& fill) const;

  struct Tap {
    int64_t index;
    float weight;
  };
  // Index i has the taps [begin[i], begin[i + 1]); null if the axis is unchanged.
  struct Axis {
    const int64_t* begin = nullptr;
    const Tap* taps = nullptr;
    int64_t stride = 0;  // In the input.
    Divider size;        // In the output.
  };

 private:
  std::vector<Axis> axes_;
  int64_t count_ = 0;  // Number of output elements.
  DeviceTable<int64_t> begins_;
  DeviceTable<Tap> taps_;
};

// The axes as kernels read them. Leading axes of size 1 are added if there are fewer than kAxes.
template <int kAxes>
struct TapWalk {
  SeparableMap::Axis axes[kAxes];

  explicit TapWalk(const std::vector<SeparableMap::Axis>& own) {
    const size_t lacking = kAxes - own.size();
    for (size_t i = 0; i < own.size(); ++i) axes[lacking + i] = own[i];
  }

  struct Place {
    int64_t at[kAxes];
  };
  CKPLAN_DEVICE Place Find(int64_t i) const {
    Place place{};
    for (int axis = kAxes - 1; axis > 0; --axis) {
      place.at[axis] = i;
      i = axes[axis].size.Split(place.at[axis]);
    }
    place.at[0] = i;
    return place;
  }
  CKPLAN_DEVICE bool HasTaps(const Place& place) const {
    for (int axis = 0; axis < kAxes; ++axis) {
      const int64_t* begin = axes[axis].begin;
      if (begin != nullptr && begin[place.at[axis]] == begin[place.at[axis] + 1]) return false;
    }
    return true;
  }
  // Returns the input offset of the first tap of each axis, which must exist.
  CKPLAN_DEVICE int64_t Source(const Place& place) const {
    int64_t source = 0;
    for (int k = 0; k < kAxes; ++k) {
      const SeparableMap::Axis& axis = axes[k];
      const int64_t at = place.at[k];
      source += axis.stride * (axis.begin == nullptr ? at : axis.taps[axis.begin[at]].index);
    }
    return source;
  }
  template <int kAxis>
  CKPLAN_DEVICE float Sum(const Place& place, const FloatsIn& x, int64_t offset) const {
    if constexpr (kAxis == kAxes) {
      return x[offset];
    } else {
      const SeparableMap::Axis& axis = axes[kAxis];
      const int64_t at = place.at[kAxis];
      if (axis.begin == nullptr) return Sum<kAxis + 1>(place, x, offset + at * axis.stride);
      const int64_t end = axis.begin[at + 1];
      float sum = 0;
      for (int64_t tap = axis.begin[at]; tap < end; ++tap) {
        const SeparableMap::Tap own = axis.taps[tap];
        sum += own.weight * Sum<kAxis + 1>(place, x, offset + own.index * axis.stride);
      }
      return sum;
    }
  }
};

// Functors, because kernel lambdas cannot be defined in generic lambdas.
template <int kAxes>
struct SumTaps {
  TapWalk<kAxes> walk;
  FloatsIn x;
  FloatsOut y;
  float fill;

  CKPLAN_DEVICE void operator()(int64_t i) const {
    const auto place = walk.Find(i);
    const bool is_hole = fill != 0 && !walk.HasTaps(place);
    y.Set(i, is_hole ? fill : walk.template Sum<0>(place, x, 0));
  }
};

template <int kAxes>
struct SelectTaps {
  TapWalk<kAxes> walk;
  ElementCopy copy, fill_copy;
  FloatsOut y;
  bool has_element, is_float;  // Properties of `fill`.
  float fill;

  CKPLAN_DEVICE void operator()(int64_t i) const {
    const auto place = walk.Find(i);
    if (walk.HasTaps(place)) {
      copy(i, walk.Source(place));
    } else if (has_element) {
      fill_copy(i, 0);
    } else if (is_float) {
      y.Set(i, fill);
    } else {
      copy.Clear(i);
    }
  }
};

template <typename Body>
void WithAxisCount(size_t axes, const Body& body) {
  if (axes <= 2) {
    body(std::integral_constant<int, 2>());
  } else if (axes <= 4) {
    body(std::integral_constant<int, 4>());
  } else {
    body(std::integral_constant<int, kMaxAxes>());
  }
}

Result<SeparableMap> SeparableMap::Create(const OpSpec& spec, Device& device,
                                          const std::vector<AxisTaps>& axes) {
  const std::vector<AxisTaps> merged = MergeIdentities(axes);
  if (merged.size() > kMaxAxes)
    return Unsupported(spec, "it has more axes than its kernel supports");
  SeparableMap map;
  map.count_ = 1;
  for (const AxisTaps& axis : merged) map.count_ *= axis.output_size();
  if (map.count_ == 0) return Result<SeparableMap>(std::move(map));
  std::vector<int64_t> begins;
  std::vector<Tap> taps;
  std::vector<size_t> begins_at(merged.size()), taps_at(merged.size());
  for (size_t i = 0; i < merged.size(); ++i) {
    begins_at[i] = begins.size();
    taps_at[i] = taps.size();
    if (merged[i].IsIdentity()) continue;
    begins.insert(begins.end(), merged[i].begin.begin(), merged[i].begin.end());
    for (size_t k = 0; k < merged[i].index.size(); ++k) {
      taps.push_back({merged[i].index[k], merged[i].weight[k]});
    }
  }
  CKPLAN_ASSIGN_OR_RETURN(map.begins_, DeviceTable<int64_t>::Create(device, begins));
  CKPLAN_ASSIGN_OR_RETURN(map.taps_, DeviceTable<Tap>::Create(device, taps));
  map.axes_.resize(merged.size());
  int64_t stride = 1;
  for (size_t i = merged.size(); i-- > 0;) {
    Axis& axis = map.axes_[i];
    axis.stride = stride;
    axis.size = Divider(merged[i].output_size());
    stride *= merged[i].input_size;
    if (merged[i].IsIdentity()) continue;
    axis.begin = map.begins_.data() + begins_at[i];
    axis.taps = map.taps_.data() + taps_at[i];
  }
  return Result<SeparableMap>(std::move(map));  // Without std::move, nvcc would copy.
}

void SeparableMap::Run(Device& device, const void* from, ElementType from_type, void* to,
                       ElementType to_type, float fill) const {
  if (count_ == 0) return;
  WithAxisCount(axes_.size(), [&](auto axes) {
    constexpr int kAxes = decltype(axes)::value;
    ForEach(device, count_,
            SumTaps<kAxes>{TapWalk<kAxes>(axes_), FloatsIn(from, from_type), FloatsOut(to, to_type),
                           fill});
  });
}

void SeparableMap::Select(Device& device, const void* from, ElementType from_type, void* to,
                          ElementType to_type, const TapFill& fill) const {
  if (count_ == 0) return;
  const bool has_element = fill.data != nullptr;
  const ElementCopy fill_copy(fill.data, has_element ? fill.type : to_type, to, to_type);
  WithAxisCount(axes_.size(), [&](auto axes) {
    constexpr int kAxes = decltype(axes)::value;
    ForEach(device, count_,
            SelectTaps<kAxes>{TapWalk<kAxes>(axes_), ElementCopy(from, from_type, to, to_type),
                              fill_copy, FloatsOut(to, to_type), has_element, IsFloat(to_type),
                              fill.value});
  });
}

// Pad, and Resize and Upsample with the interpolation taps of lib/problem/ops/pad_resize.h: each
// output element is one input element or a fill, or a weighted sum of input elements.
class TapsOp final : public PreparedOp {
 public:
  TapsOp(const OpSpec& spec, Device& device, SeparableMap map, SeparableMap transposed,
         bool selects, bool has_fill_input, float fill)
      : device_(device),
        map_(std::move(map)),
        transposed_(std::move(transposed)),
        x_type_(spec.input(0).type),
        y_type_(spec.output(0).type),
        selects_(selects),
        has_fill_input_(has_fill_input) {
    if (has_fill_input_) {
      fill_.type = spec.input(2).type;
    } else {
      fill_.value = fill;
    }
  }

  void Forward(const ForwardCall& call) override {
    if (selects_) {
      TapFill fill = fill_;
      if (has_fill_input_) fill.data = call.inputs[2];
      map_.Select(device_, call.inputs[0], x_type_, call.outputs[0], y_type_, fill);
    } else {
      map_.Run(device_, call.inputs[0], x_type_, call.outputs[0], y_type_, fill_.value);
    }
  }
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    transposed_.Run(device_, call.output_gradients[0], y_type_, gradient, x_type_);
  }

 private:
  Device& device_;
  SeparableMap map_, transposed_;
  ElementType x_type_, y_type_;
  bool selects_, has_fill_input_;
  TapFill fill_;
};

Result<std::unique_ptr<PreparedOp>> PrepareTaps(const OpSpec& spec, Device& device,
                                                const std::vector<AxisTaps>& axes, bool selects,
                                                bool has_fill_input, float fill) {
  CKPLAN_ASSIGN_OR_RETURN(SeparableMap map, SeparableMap::Create(spec, device, axes));
  SeparableMap transposed;
  if (spec.input(0).has_gradient) {
    CKPLAN_ASSIGN_OR_RETURN(transposed, SeparableMap::Create(spec, device, Transposed(axes)));
  }
  return Prepared<TapsOp>(spec, device, std::move(map), std::move(transposed), selects,
                          has_fill_input, fill);
}

Result<std::unique_ptr<PreparedOp>> PreparePad(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const PadShape shape, ReadPadShape(spec));
  return PrepareTaps(spec, device, shape.axes, true, shape.has_value_input, shape.value);
}

Result<std::unique_ptr<PreparedOp>> PrepareResize(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const ResizeShape shape, ReadResizeShape(spec));
  return PrepareTaps(spec, device, shape.axes, shape.selects, false, shape.fill);
}

constexpr OpRow kPadOps[] = {
    {"Pad", PreparePad},
    {"CenterCropPad", PreparePad},
};
constexpr OpRow kResizeOps[] = {
    {"Resize", PrepareResize},
    {"Upsample", PrepareResize},
};

}  // namespace

std::span<const OpRow> PadOps() { return kPadOps; }

std::span<const OpRow> ResizeOps() { return kResizeOps; }

}  // namespace ckplan::cuda
