#include "lib/problem/ops/taps.h"

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

}  // namespace ckplan
