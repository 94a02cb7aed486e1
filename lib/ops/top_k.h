// TopK: the largest or smallest of each line along an axis, in order, and where they were.
#pragma once

#include <cstdint>

#include "lib/base/result.h"
#include "lib/ops/axes.h"
#include "lib/ops/families.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

struct TopKShape {
  AxisView view;       // How the input is seen along the axis.
  int64_t chosen = 0;  // Elements taken from each line; at most view.size.
  bool is_largest = true;
  // Their indices are saved for backward as the statistic, where the model has no name for them.
  bool has_statistic = false;

  int64_t lines() const { return view.outer * view.inner; }
};

Result<TopKShape> ReadTopKShape(const OpSpec& spec);

}  // namespace ckplan
