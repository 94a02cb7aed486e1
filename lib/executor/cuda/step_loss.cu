#include <algorithm>
#include <numeric>
#include <vector>

#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/step_loss.h"
#include "lib/executor/scalar/step_loss.h"

namespace ckplan::cuda {

namespace {

struct AddDoubles {
  CKPLAN_DEVICE double operator()(double a, double b) const { return a + b; }
};

// Each thread computes one part of the sum.
void StartGivenLoss(Device& device, const LossCall& call, int64_t parts, double* part_sums) {
  const int64_t count = call.output.elements();
  const scalar::GivenGradient given = scalar::GivenGradientOf(call.seed, count);
  const FloatsIn values(call.contents, call.output.type);
  const FloatsOut gradient(call.gradient, call.output.type);
  ForEach(device, parts, [=] CKPLAN_KERNEL(int64_t part) {
    double sum = 0;
    for (int64_t i = part; i < count; i += scalar::kLossParts) {
      gradient.Set(i, given(i));
      sum += static_cast<double>(values[i]) * static_cast<double>(gradient[i]);
    }
    part_sums[part] = sum;
  });
}

// A warp computes one part of the sum: the classes of a position are adjacent.
void StartCrossEntropyOfRows(Device& device, const scalar::CrossEntropy& entropy, FloatsIn scores,
                             FloatsOut gradient, int64_t parts, double* part_sums) {
  static_assert(kWarpTeam == scalar::kClassParts);
  const int64_t short_row = kWarpTeam;  // Makes teams of warps, whatever the number of classes.
  ForRows(device, parts, short_row, [=] CKPLAN_KERNEL(const Team& team, int64_t part) {
    const int64_t positions = entropy.positions();
    double loss = 0;
    for (int64_t position = part; position < positions; position += scalar::kLossParts) {
      const scalar::ClassScores at = entropy.ScoresOf(position);
      const int64_t label = entropy.LabelOf(position);
      const float largest = team.Reduce(
          entropy.classes, -INFINITY, [&](int64_t c) { return scores[at.At(c)]; }, LargerOf());
      const double sum = team.Reduce(
          entropy.classes, 0.0,
          [&](int64_t c) {
            return scalar::ExpOfNegative(entropy.Shifted(scores[at.At(c)], largest));
          },
          AddDoubles());
      loss += entropy.LossOf(sum, scores[at.At(label)], largest);
      team.ForEach(entropy.classes, [&](int64_t c) {
        const double exponential =
            scalar::ExpOfNegative(entropy.Shifted(scores[at.At(c)], largest));
        gradient.Set(at.At(c), entropy.GradientOf(exponential, sum, c == label));
      });
    }
    if (team.IsFirst()) part_sums[part] = loss;
  });
}

// A thread computes one part of the sum: the scores of neighbouring positions are adjacent.
void StartCrossEntropyOfImages(Device& device, const scalar::CrossEntropy& entropy, FloatsIn scores,
                               FloatsOut gradient, int64_t parts, double* part_sums) {
  ForEach(device, parts, [=] CKPLAN_KERNEL(int64_t part) {
    const int64_t positions = entropy.positions();
    double loss = 0;
    for (int64_t position = part; position < positions; position += scalar::kLossParts) {
      const scalar::ClassScores at = entropy.ScoresOf(position);
      const int64_t label = entropy.LabelOf(position);
      float largest = -INFINITY;
      for (int64_t c = 0; c < entropy.classes; ++c) {
        largest = LargerOf()(largest, scores[at.At(c)]);
      }
      double sum = 0;
      for (int64_t c = 0; c < entropy.classes; ++c) {
        sum += scalar::ExpOfNegative(entropy.Shifted(scores[at.At(c)], largest));
      }
      loss += entropy.LossOf(sum, scores[at.At(label)], largest);
      for (int64_t c = 0; c < entropy.classes; ++c) {
        const double exponential =
            scalar::ExpOfNegative(entropy.Shifted(scores[at.At(c)], largest));
        gradient.Set(at.At(c), entropy.GradientOf(exponential, sum, c == label));
      }
    }
    part_sums[part] = loss;
  });
}

// Returns the number of terms of the loss.
int64_t StartLoss(Device& device, const LossCall& call, double* part_sums) {
  if (call.kind == LossKind::kGiven) {
    const int64_t count = call.output.elements();
    StartGivenLoss(device, call, std::min(count, scalar::kLossParts), part_sums);
    return count;
  }
  const scalar::CrossEntropy entropy =
      scalar::CrossEntropyOf(call.seed, call.output.dims, ClassAxis(call.output.dims));
  const FloatsIn scores(call.contents, call.output.type);
  const FloatsOut gradient(call.gradient, call.output.type);
  const int64_t parts = std::min(entropy.positions(), scalar::kLossParts);
  if (entropy.inner == 1) {
    StartCrossEntropyOfRows(device, entropy, scores, gradient, parts, part_sums);
  } else {
    StartCrossEntropyOfImages(device, entropy, scores, gradient, parts, part_sums);
  }
  return entropy.positions();
}

}  // namespace

double RunStepLoss(Device& device, const LossCall& call, void* scratch) {
  auto* const part_sums = static_cast<double*>(scratch);
  const int64_t terms = StartLoss(device, call, part_sums);
  std::vector<double> parts(static_cast<size_t>(std::min(terms, scalar::kLossParts)));
  device.Download(parts.data(), part_sums, static_cast<int64_t>(parts.size() * sizeof(double)));
  return std::accumulate(parts.begin(), parts.end(), 0.0);
}

}  // namespace ckplan::cuda
