// Shapes of Softmax and of losses.
#pragma once

#include <cstdint>
#include <string_view>

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/layout.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// The shape of Softmax and LogSoftmax. Since opset 13 they normalise along one axis; before, along
// all axes from the given one on.

using SoftmaxShape = AxisView;

Result<SoftmaxShape> ReadSoftmaxShape(const OpSpec& spec);

// The attribute of a Softmax that replaces NaNs by zeros, as in PyTorch's attention. A row has NaNs
// if all of its elements are -infinity.
inline constexpr std::string_view kGuardAttribute = "guard";
bool IsGuarded(const OpSpec& spec);

// The shape of SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss, which compute the negative
// log probability of the label of each place.
//
// Scores are [samples, classes, ...]. A place is an index of all axes except the classes.

enum class LossTotal : uint8_t { kNone, kSum, kMean };

struct LossShape {
  AxisView view;  // outer: samples; size: classes; inner: the axes after the classes.
  LossTotal total = LossTotal::kMean;
  bool takes_softmax = false;
  bool has_weights = false;  // One weight per class.
  int64_t ignored = -1;      // Places with this label or a negative one do not count.

  int64_t places() const { return view.outer * view.inner; }
};

Result<LossShape> ReadLossShape(const OpSpec& spec);

// PointwiseLoss is ckplan's own operator: a loss of PyTorch that is one operation, computed for
// each element of a prediction and a target of the same shape, and then averaged or summed up
// (attribute reduction). Exporters write its formula. Optional inputs 2 and 3 are the weight and
// the positive weight of a binary cross entropy; they repeat along the leading axes.
enum class PointwiseFunction : uint8_t {
  kSquare,
  kHuber,
  kSmoothL1,
  kSoftMargin,
  kCrossEntropy,          // Takes the probabilities of two classes.
  kCrossEntropyOfScores,  // Takes scores, whose sigmoid is the probability.
};

inline constexpr std::string_view kFunctionAttribute = "function";    // A name in PyTorch.
inline constexpr std::string_view kThresholdAttribute = "threshold";  // Huber's delta, or beta.

struct PointwiseLossShape {
  PointwiseFunction function = PointwiseFunction::kSquare;
  LossTotal total = LossTotal::kMean;
  float threshold = 1;
  int64_t elements = 0;
};

Result<PointwiseLossShape> ReadPointwiseLossShape(const OpSpec& spec);

// True if swapping prediction and target changes only the sign of the gradients.
bool IsSymmetric(PointwiseFunction function);
// How many tensors of the prediction's size PyTorch needs besides the gradient of a PointwiseLoss.
// Many means and sums keep the memory of the losses of all elements, from before backward.
int64_t PointwiseTemporaries(const OpSpec& spec);

}  // namespace ckplan
