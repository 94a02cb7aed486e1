// Reads indices, and combines elements with updates.
#pragma once

#include <algorithm>

#include "lib/executor/reference/reference.h"

namespace ckplan::reference {

inline int64_t AxisOf(const OpSpec& spec, const Tensor& data) {
  const int64_t axis = spec.Int("axis", 0);
  return axis < 0 ? axis + data.rank() : axis;
}

// Returns the index counted from 0; negative indices count from the end. Returns -1 if the index is
// out of range.
inline int64_t Normal(double index, int64_t size) {
  const auto at = static_cast<int64_t>(index < 0 ? index + static_cast<double>(size) : index);
  return at >= 0 && at < size ? at : -1;
}

inline double Combined(const OpSpec& spec, double old, double update) {
  const std::string reduction = spec.String("reduction", "none");
  if (reduction == "add") return old + update;
  if (reduction == "mul") return old * update;
  if (reduction == "max") return std::max(old, update);
  if (reduction == "min") return std::min(old, update);
  return update;
}

}  // namespace ckplan::reference
