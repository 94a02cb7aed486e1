// The shape of SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss: for each place, the
// negative logarithm of its label's probability.
//
// Scores are [samples, classes, ...]; a place is a sample and what follows the classes.
#pragma once

#include <cstdint>

#include "lib/base/result.h"
#include "lib/ops/axes.h"
#include "lib/ops/families.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

enum class LossTotal : uint8_t { kNone, kSum, kMean };

struct LossShape {
  AxisView view;  // Samples, classes, and what follows.
  LossTotal total = LossTotal::kMean;
  bool takes_softmax = false;
  bool has_weights = false;  // One for each class.
  int64_t ignored = -1;      // A place with this label, or one below 0, counts for nothing.

  int64_t places() const { return view.outer * view.inner; }
};

Result<LossShape> ReadLossShape(const OpSpec& spec);

}  // namespace ckplan
