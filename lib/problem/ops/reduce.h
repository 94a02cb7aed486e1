// Shapes of reductions, scans and TopK.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// Reductions along axes: sums, means, products, minima, maxima and norms.
struct ReduceShape {
  // Strides of the input and the output; the output's are 0 along reduced axes.
  Layout layout;
  int64_t results = 1;   // Elements of the output.
  int64_t elements = 1;  // Elements of the input.
};

Result<ReduceShape> ReadReduceShape(const OpSpec& spec);

// Operators that scan each line along an axis: cumulative sums, and the indices of extreme values.
struct CumSumShape {
  AxisView view;
  bool is_exclusive = false;  // Each sum excludes the element at its own position.
  bool is_reverse = false;    // Sums start at the last element.
};
Result<CumSumShape> ReadCumSumShape(const OpSpec& spec);

// The shape of ArgMax and ArgMin.
struct ArgShape {
  AxisView view;
  bool is_max = true;
  bool takes_last = false;  // Among equal extreme values, the last one is chosen.
};
Result<ArgShape> ReadArgShape(const OpSpec& spec);

Result<AxisView> ReadHardmaxShape(const OpSpec& spec);

// TopK: the largest or smallest elements of each line along an axis, in order, and their indices.
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
