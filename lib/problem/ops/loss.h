// The shape of SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss, which compute for each place
// the negative logarithm of the probability of its label.
//
// Scores are [samples, classes, ...]. A place is one sample at one index of the axes after the
// classes.
#pragma once

#include <cstdint>

#include "lib/base/result.h"
#include "lib/problem/ops/axes.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

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
