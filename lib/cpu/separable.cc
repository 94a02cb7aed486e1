#include "lib/cpu/separable.h"

#include <algorithm>

#include "lib/cpu/strided_copy.h"

namespace ckplan::cpu {

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

SeparableMap::SeparableMap(const std::vector<AxisTaps>& axes) {
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
  inner_ = std::move(merged.back());
  merged.pop_back();
  outer_ = std::move(merged);
  is_inner_identity_ = inner_.IsIdentity();
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
}

SeparableMap SeparableMap::Transposed() const {
  std::vector<AxisTaps> axes;
  for (const AxisTaps& axis : outer_) axes.push_back(axis.Transposed());
  axes.push_back(inner_.Transposed());
  return SeparableMap(axes);
}

template <typename Body>
void SeparableMap::ForRowTaps(int64_t row, const Body& body) const {
  // The tap of each axis, counted up like the digits of a number.
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
  if (is_inner_identity_) {
    for (int64_t i = 0; i < inner_.input_size; ++i) to[i] += weight * from[i];
    return;
  }
  const int64_t size = inner_.output_size();
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

void SeparableMap::Run(const float* from, float* to, float fill) const {
  const int64_t width = inner_.output_size();
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, 4 * width));
  if (width == 0) return;
  ParallelFor(rows_, grain, [=, this](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* out = to + row * width;
      bool is_empty = true;
      std::fill_n(out, width, 0.0F);
      ForRowTaps(row, [&](int64_t offset, float weight) {
        AddRow(from + offset, weight, out);
        is_empty = false;
      });
      if (is_empty) {
        std::fill_n(out, width, fill);
      } else if (has_inner_holes_) {
        for (int64_t i = 0; i < width; ++i) {
          const auto at = static_cast<size_t>(i);
          if (inner_.begin[at] == inner_.begin[at + 1]) out[i] = fill;
        }
      }
    }
  });
}

template <typename T>
void SeparableMap::SelectRow(const T* from, T* to) const {
  const int64_t width = inner_.output_size();
  if (is_inner_identity_) {
    std::copy_n(from, width, to);
    return;
  }
  for (int64_t i = 0; i < width; ++i) {
    const auto at = static_cast<size_t>(i);
    if (inner_.begin[at] == inner_.begin[at + 1]) continue;
    to[i] = from[inner_.index[static_cast<size_t>(inner_.begin[at])]];
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
        std::fill_n(out, width, elsewhere);
        ForRowTaps(row, [&](int64_t offset, float) { SelectRow(x + offset, out); });
      }
    });
  });
}

}  // namespace ckplan::cpu
