#include "lib/executor/cpu/separable.h"

#include <algorithm>
#include <array>

#include "lib/executor/cpu/strided_copy.h"

namespace ckplan::cpu {

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

}  // namespace ckplan::cpu
