// Shapes of reductions, scans and TopK.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// Sums, means, products, minima, maxima and norms along axes.
struct ReduceShape {
  // Strides of the input and the output; the output's are 0 along reduced axes.
  Layout layout;
  int64_t results = 1;   // The elements of the output.
  int64_t elements = 1;  // The elements of the input.
};

Result<ReduceShape> ReadReduceShape(const OpSpec& spec);

// The attribute of ReduceVariance, ckplan's own operator, PyTorch's var: squared differences from
// the mean are divided by the number of elements less this correction.
inline constexpr std::string_view kCorrectionAttribute = "correction";

// The shape of CumSum.
struct CumSumShape {
  AxisView view;
  bool is_exclusive = false;  // Each sum excludes the element at its own position.
  bool is_reverse = false;    // The sums start at the last element.
};
Result<CumSumShape> ReadCumSumShape(const OpSpec& spec);

// The shape of ArgMax and ArgMin.
struct ArgShape {
  AxisView view;
  bool is_max = true;
  bool takes_last = false;  // Chooses the last of equal extreme values.
};
Result<ArgShape> ReadArgShape(const OpSpec& spec);

Result<AxisView> ReadHardmaxShape(const OpSpec& spec);

// TopK: the largest or smallest elements of each line along an axis, in order, and their indices.
struct TopKShape {
  AxisView view;       // The input as outer x size x inner around the axis.
  int64_t chosen = 0;  // The number of elements taken from each line; at most view.size.
  bool is_largest = true;
  // True if the indices are saved for backward as a statistic, because the model does not name that
  // output.
  bool has_statistic = false;

  int64_t lines() const { return view.outer * view.inner; }
};

Result<TopKShape> ReadTopKShape(const OpSpec& spec);

}  // namespace ckplan
