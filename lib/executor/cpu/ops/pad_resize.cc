// Pad in all its modes, CenterCropPad, Resize and Upsample, using the taps of
// lib/problem/ops/pad_resize.h.
#include "lib/problem/ops/pad_resize.h"

#include <algorithm>
#include <array>

#include "lib/executor/backend/backend.h"
#include "lib/executor/cpu/registry.h"
#include "lib/executor/cpu/strided_copy.h"

namespace ckplan::cpu {

namespace {

// Linear maps applied independently along each axis; see lib/problem/ops/pad_resize.h.
class SeparableMap {
 public:
  SeparableMap() = default;
  // `axes` has one entry per axis, none for scalars. Neighbouring unchanged axes are merged.
  explicit SeparableMap(const std::vector<AxisTaps>& axes);

  SeparableMap Transposed() const;
  // `fill` is the output's value where there is no tap.
  void Run(const float* from, float* to, float fill = 0) const;
  // Selects elements of any type, given their size. Each output element has at most one tap, with
  // weight 1. `fill` (one element) is the output's value where there is no tap.
  void Select(const void* from, void* to, int64_t element_bytes, const void* fill) const;

 private:
  // Neighbouring elements of an output row that read neighbouring input elements with the same
  // weight.
  struct Stretch {
    int64_t to = 0, from = 0, length = 0;
    float weight = 1;
  };
  // At most two taps, enough for linear interpolation. A single tap gets a second one of weight 0.
  struct TapPair {
    int64_t first = 0, second = 0;
    float first_weight = 0, second_weight = 0;
  };

  void FindStretches();
  void FindPairs();
  // Calls body(offset of an input row, weight) for all taps of an output row.
  template <typename Body>
  void ForRowTaps(int64_t row, const Body& body) const;
  void RunRow(int64_t row, const float* from, float* to, float fill) const;
  void AddRow(const float* from, float weight, float* to) const;
  void FillHoles(float* to, float fill) const;
  template <typename T>
  void SelectRow(const T* from, T* to) const;

  std::vector<AxisTaps> outer_;  // All axes but the last.
  Dims input_strides_;           // Strides of the outer axes.
  AxisTaps inner_;
  bool has_inner_holes_ = false;      // Some indices have no taps.
  std::vector<Stretch> stretches_;    // For one row; empty if they would be too short.
  std::vector<TapPair> inner_pairs_;  // For one row; empty if an element has more taps.
  int64_t rows_ = 1;                  // Rows of the output.
};

SeparableMap::SeparableMap(const std::vector<AxisTaps>& axes) {
  std::vector<AxisTaps> merged = MergeIdentities(axes);
  inner_ = std::move(merged.back());
  merged.pop_back();
  outer_ = std::move(merged);
  for (size_t i = 0; i + 1 < inner_.begin.size(); ++i) {
    has_inner_holes_ = has_inner_holes_ || inner_.begin[i] == inner_.begin[i + 1];
  }
  input_strides_.assign(outer_.size(), 0);
  int64_t stride = inner_.input_size;
  for (size_t axis = outer_.size(); axis-- > 0;) {
    input_strides_[axis] = stride;
    stride *= outer_[axis].input_size;
    rows_ *= outer_[axis].output_size();
  }
  FindStretches();
  if (stretches_.empty()) FindPairs();
}

void SeparableMap::FindStretches() {
  for (size_t i = 0; i + 1 < inner_.begin.size(); ++i) {
    const int64_t taps = inner_.begin[i + 1] - inner_.begin[i];
    if (taps == 0) continue;
    if (taps > 1) return stretches_.clear();
    const auto tap = static_cast<size_t>(inner_.begin[i]);
    const auto to = static_cast<int64_t>(i);
    const int64_t from = inner_.index[tap];
    const float weight = inner_.weight[tap];
    if (!stretches_.empty()) {
      Stretch& last = stretches_.back();
      const bool continues = last.to + last.length == to && last.from + last.length == from;
      if (continues && last.weight == weight) {
        ++last.length;
        continue;
      }
    }
    stretches_.push_back({to, from, 1, weight});
  }
  const auto count = static_cast<int64_t>(stretches_.size());
  if (count > 1 && 4 * count > inner_.output_size()) stretches_.clear();
}

void SeparableMap::FindPairs() {
  for (size_t i = 0; i + 1 < inner_.begin.size(); ++i) {
    const int64_t taps = inner_.begin[i + 1] - inner_.begin[i];
    if (taps > 2) return inner_pairs_.clear();
    TapPair pair;
    const auto first = static_cast<size_t>(inner_.begin[i]);
    if (taps > 0) {
      pair.first = pair.second = inner_.index[first];
      pair.first_weight = inner_.weight[first];
    }
    if (taps > 1) {
      pair.second = inner_.index[first + 1];
      pair.second_weight = inner_.weight[first + 1];
    }
    inner_pairs_.push_back(pair);
  }
}

SeparableMap SeparableMap::Transposed() const {
  std::vector<AxisTaps> axes;
  for (const AxisTaps& axis : outer_) axes.push_back(axis.Transposed());
  axes.push_back(inner_.Transposed());
  return SeparableMap(axes);
}

template <typename Body>
void SeparableMap::ForRowTaps(int64_t row, const Body& body) const {
  // The current tap of each axis; the taps advance like the digits of a number.
  Dims first(outer_.size()), last(outer_.size());
  for (size_t axis = outer_.size(); axis-- > 0;) {
    const auto at = static_cast<size_t>(row % outer_[axis].output_size());
    row /= outer_[axis].output_size();
    first[axis] = outer_[axis].begin[at];
    last[axis] = outer_[axis].begin[at + 1];
    if (first[axis] == last[axis]) return;
  }
  Dims tap = first;
  while (true) {
    int64_t offset = 0;
    float weight = 1;
    for (size_t axis = 0; axis < outer_.size(); ++axis) {
      const auto at = static_cast<size_t>(tap[axis]);
      offset += outer_[axis].index[at] * input_strides_[axis];
      weight *= outer_[axis].weight[at];
    }
    body(offset, weight);
    size_t axis = outer_.size();
    while (axis > 0 && ++tap[axis - 1] == last[axis - 1]) {
      tap[axis - 1] = first[axis - 1];
      --axis;
    }
    if (axis == 0) return;
  }
}

void SeparableMap::AddRow(const float* from, float weight, float* to) const {
  for (const Stretch& stretch : stretches_) {
    const float scale = weight * stretch.weight;
    for (int64_t i = 0; i < stretch.length; ++i) {
      to[stretch.to + i] += scale * from[stretch.from + i];
    }
  }
  if (!stretches_.empty()) return;
  const int64_t size = inner_.output_size();
  if (!inner_pairs_.empty()) {
    const TapPair* pairs = inner_pairs_.data();
    for (int64_t i = 0; i < size; ++i) {
      const TapPair& pair = pairs[i];
      to[i] +=
          weight * (pair.first_weight * from[pair.first] + pair.second_weight * from[pair.second]);
    }
    return;
  }
  const int64_t* begin = inner_.begin.data();
  for (int64_t i = 0; i < size; ++i) {
    float sum = 0;
    for (int64_t tap = begin[i]; tap < begin[i + 1]; ++tap) {
      const auto at = static_cast<size_t>(tap);
      sum += inner_.weight[at] * from[inner_.index[at]];
    }
    to[i] += weight * sum;
  }
}

void SeparableMap::FillHoles(float* to, float fill) const {
  for (size_t i = 0; i + 1 < inner_.begin.size(); ++i) {
    if (inner_.begin[i] == inner_.begin[i + 1]) to[i] = fill;
  }
}

// Sums the input rows before interpolating within a row, if a row fits on the stack.
void SeparableMap::RunRow(int64_t row, const float* from, float* to, float fill) const {
  constexpr int64_t kMaxColumns = 4096;
  const int64_t columns = inner_.input_size;
  const bool sums_first = stretches_.empty() && columns <= kMaxColumns;
  std::array<float, kMaxColumns> sums;
  int64_t taps = 0;
  std::fill_n(to, inner_.output_size(), 0.0F);
  ForRowTaps(row, [&](int64_t offset, float weight) {
    const float* source = from + offset;
    if (!sums_first) {
      AddRow(source, weight, to);
    } else if (taps == 0) {
      for (int64_t i = 0; i < columns; ++i) sums[static_cast<size_t>(i)] = weight * source[i];
    } else {
      for (int64_t i = 0; i < columns; ++i) sums[static_cast<size_t>(i)] += weight * source[i];
    }
    ++taps;
  });
  if (taps == 0) {
    std::fill_n(to, inner_.output_size(), fill);
    return;
  }
  if (sums_first) AddRow(sums.data(), 1, to);
  if (has_inner_holes_ && fill != 0) FillHoles(to, fill);
}

void SeparableMap::Run(const float* from, float* to, float fill) const {
  const int64_t width = inner_.output_size();
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, 4 * width));
  if (width == 0) return;
  ParallelFor(rows_, grain, [=, this](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) RunRow(row, from, to + row * width, fill);
  });
}

template <typename T>
void SeparableMap::SelectRow(const T* from, T* to) const {
  for (const Stretch& stretch : stretches_) {
    std::copy_n(from + stretch.from, stretch.length, to + stretch.to);
  }
  if (!stretches_.empty()) return;
  for (size_t i = 0; i + 1 < inner_.begin.size(); ++i) {
    if (inner_.begin[i] == inner_.begin[i + 1]) continue;
    to[i] = from[inner_.index[static_cast<size_t>(inner_.begin[i])]];
  }
}

void SeparableMap::Select(const void* from, void* to, int64_t element_bytes,
                          const void* fill) const {
  const int64_t width = inner_.output_size();
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, width));
  if (width == 0) return;
  WithElementOf(element_bytes, [&](auto zero) {
    using T = decltype(zero);
    const auto* x = static_cast<const T*>(from);
    auto* y = static_cast<T*>(to);
    T elsewhere;
    std::memcpy(&elsewhere, fill, sizeof(T));
    ParallelFor(rows_, grain, [=, this](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        T* out = y + row * width;
        bool is_empty = true;
        ForRowTaps(row, [&](int64_t offset, float) {
          is_empty = false;
          if (has_inner_holes_) std::fill_n(out, width, elsewhere);
          SelectRow(x + offset, out);
        });
        if (is_empty) std::fill_n(out, width, elsewhere);
      }
    });
  });
}

// Pad, and Resize and Upsample with the interpolation taps of lib/problem/ops/pad_resize.h: each
// output element is one input element or a fill, or a weighted sum of input elements.
class TapsOp final : public PreparedOp {
 public:
  TapsOp(const OpSpec& spec, const std::vector<AxisTaps>& axes, bool selects, bool has_fill_input,
         float fill)
      : map_(axes),
        element_bytes_(SizeOf(spec.input(0).type)),
        selects_(selects),
        has_fill_input_(has_fill_input),
        fill_(fill) {
    if (spec.input(0).has_gradient) transposed_ = map_.Transposed();
  }

  void Forward(const ForwardCall& call) override {
    if (!selects_) {
      map_.Run(static_cast<const float*>(call.inputs[0]), static_cast<float*>(call.outputs[0]),
               fill_);
      return;
    }
    const int64_t zero = 0;
    const void* fill = &zero;
    if (has_fill_input_ && call.inputs[2] != nullptr) fill = call.inputs[2];
    if (!has_fill_input_ && element_bytes_ == 4) fill = &fill_;
    map_.Select(call.inputs[0], call.outputs[0], element_bytes_, fill);
  }
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    transposed_.Run(static_cast<const float*>(call.output_gradients[0]),
                    static_cast<float*>(gradient));
  }

 private:
  SeparableMap map_, transposed_;
  int64_t element_bytes_;
  bool selects_, has_fill_input_;
  float fill_;
};

Result<std::unique_ptr<PreparedOp>> PreparePad(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const PadShape shape, ReadPadShape(spec));
  return Prepared<TapsOp>(spec, shape.axes, true, shape.has_value_input, shape.value);
}

Result<std::unique_ptr<PreparedOp>> PrepareResize(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const ResizeShape shape, ReadResizeShape(spec));
  return Prepared<TapsOp>(spec, shape.axes, shape.selects, false, shape.fill);
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

}  // namespace ckplan::cpu
