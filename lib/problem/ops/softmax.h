// Shapes of Softmax and of losses.
#pragma once

#include <cstdint>
#include <string_view>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// The shape of Softmax and LogSoftmax. From opset 13 on they normalise along one axis; before, they
// treated all axes from the given one to the last as a single axis.

using SoftmaxShape = AxisView;

Result<SoftmaxShape> ReadSoftmaxShape(const OpSpec& spec);

// The attribute of a Softmax that makes zeros of its NaNs, as PyTorch's does within an attention. A
// row has NaNs if all of its elements are -infinity.
inline constexpr std::string_view kGuardAttribute = "guard";
bool IsGuarded(const OpSpec& spec);

// The shape of SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss, which compute for each place
// the negative logarithm of the probability of its label.
//
// Scores are [samples, classes, ...]. A place is one sample at one index of the axes after the
// classes.

enum class LossTotal : uint8_t { kNone, kSum, kMean };

struct LossShape {
  AxisView view;  // outer: samples; size: classes; inner: the axes after the classes.
  LossTotal total = LossTotal::kMean;
  bool takes_softmax = false;
  bool has_weights = false;  // There is one weight for each class.
  int64_t ignored = -1;      // A place whose label is this one, or is negative, does not count.

  int64_t places() const { return view.outer * view.inner; }
};

Result<LossShape> ReadLossShape(const OpSpec& spec);

}  // namespace ckplan
