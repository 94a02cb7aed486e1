// TopK: the largest or smallest elements of each line along an axis, in order, and their indices.
#pragma once

#include <cstdint>

#include "lib/base/result.h"
#include "lib/problem/ops/axes.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

struct TopKShape {
  AxisView view;       // The input as outer x size x inner around the axis.
  int64_t chosen = 0;  // Elements taken from each line; at most view.size.
  bool is_largest = true;
  // Whether the indices are saved for backward as a statistic, because the model does not name that
  // output.
  bool has_statistic = false;

  int64_t lines() const { return view.outer * view.inner; }
};

Result<TopKShape> ReadTopKShape(const OpSpec& spec);

}  // namespace ckplan
