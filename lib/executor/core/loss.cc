#include "lib/executor/core/loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "lib/base/check.h"
#include "lib/executor/core/seeded.h"
#include "lib/executor/scalar/step_loss.h"
#include "lib/problem/ops/bfloat16.h"

namespace ckplan {

namespace {

// Adds numbers in the order of lib/executor/scalar/step_loss.h.
class LossSum {
 public:
  explicit LossSum(int64_t count)
      : parts_(static_cast<size_t>(std::min(count, scalar::kLossParts)), 0.0) {}

  void Add(int64_t index, double value) {
    parts_[static_cast<size_t>(index % scalar::kLossParts)] += value;
  }
  double Total() const { return std::accumulate(parts_.begin(), parts_.end(), 0.0); }

 private:
  std::vector<double> parts_;
};

double GivenLoss(uint64_t seed, const Operand& output, std::vector<float>& values) {
  const int64_t count = output.elements();
  const scalar::GivenGradient given = scalar::GivenGradientOf(seed, count);
  LossSum loss(count);
  for (int64_t i = 0; i < count; ++i) {
    float& value = values[static_cast<size_t>(i)];
    float gradient = given(i);
    // The loss is the inner product with the gradient as it is stored, which may be rounded.
    if (output.type == ElementType::kBFloat16) gradient = FromBFloat16(ToBFloat16(gradient));
    loss.Add(i, static_cast<double>(value) * static_cast<double>(gradient));
    value = gradient;
  }
  return loss.Total();
}

double SumOfExponentials(const scalar::CrossEntropy& entropy, const scalar::ClassScores& at,
                         float largest, const std::vector<float>& scores) {
  const int64_t count = entropy.ClassParts();
  double parts[scalar::kClassParts] = {};
  for (int64_t c = 0; c < entropy.classes; ++c) {
    const float score = scores[static_cast<size_t>(at.At(c))];
    parts[c % count] += scalar::ExpOfNegative(entropy.Shifted(score, largest));
  }
  for (int64_t half = count / 2; half > 0; half /= 2) {
    for (int64_t i = 0; i < half; ++i) parts[i] += parts[i + half];
  }
  return parts[0];
}

// The mean softmax cross-entropy over all positions except the class axis.
double CrossEntropyLoss(uint64_t seed, const Operand& output, std::vector<float>& scores) {
  const scalar::CrossEntropy entropy =
      scalar::CrossEntropyOf(seed, output.dims, ClassAxis(output.dims));
  CKPLAN_CHECK(entropy.classes > 0, "RequireLoss refuses outputs without classes");
  LossSum loss(entropy.positions());
  for (int64_t p = 0; p < entropy.positions(); ++p) {
    const scalar::ClassScores at = entropy.ScoresOf(p);
    const int64_t label = entropy.LabelOf(p);
    float largest = -std::numeric_limits<float>::infinity();
    for (int64_t c = 0; c < entropy.classes; ++c) {
      const float score = scores[static_cast<size_t>(at.At(c))];
      if (largest < score || score != score) largest = score;
    }
    const double sum = SumOfExponentials(entropy, at, largest, scores);
    loss.Add(p, entropy.LossOf(sum, scores[static_cast<size_t>(at.At(label))], largest));
    for (int64_t c = 0; c < entropy.classes; ++c) {
      float& score = scores[static_cast<size_t>(at.At(c))];
      const double exponential = scalar::ExpOfNegative(entropy.Shifted(score, largest));
      score = entropy.GradientOf(exponential, sum, c == label);
    }
  }
  return loss.Total();
}

std::vector<float> DownloadFloats(Backend& backend, const Operand& operand, const void* contents) {
  const auto count = static_cast<size_t>(operand.elements());
  if (operand.type == ElementType::kBFloat16) {
    std::vector<uint16_t> halves(count);
    backend.Download(halves.data(), contents, operand.bytes());
    return FromBFloat16(halves);
  }
  std::vector<float> values(count);
  backend.Download(values.data(), contents, operand.bytes());
  return values;
}

void UploadFloats(Backend& backend, const Operand& operand, void* contents,
                  const std::vector<float>& values) {
  if (operand.type == ElementType::kBFloat16) {
    backend.Upload(contents, ToBFloat16(values).data(), operand.bytes());
  } else {
    backend.Upload(contents, values.data(), operand.bytes());
  }
}

}  // namespace

std::string_view NameOf(LossKind kind) {
  return kind == LossKind::kGiven ? "given" : "cross-entropy";
}

Result<Done> RequireLoss(LossKind kind, const StepGraph& step) {
  if (kind != LossKind::kCrossEntropy) return Done{};
  for (const TensorId output : step.graph.outputs()) {
    const Tensor& tensor = step.graph.tensor(output);
    const std::vector<int64_t>& dims = step.tensors[output].dims;
    if (!tensor.requires_grad || dims.empty() || dims[ClassAxis(dims)] > 0) continue;
    return MakeError(
        ErrorCode::kUnsupported,
        fmt::format(
            "the output \"{}\" has no cross-entropy: its axis {}, which holds the scores of "
            "the classes, has no elements; choose the loss \"{}\"",
            tensor.name, ClassAxis(dims), NameOf(LossKind::kGiven)));
  }
  return Done{};
}

double LossOnHost(LossKind kind, uint64_t seed, const Operand& output, std::vector<float>& values) {
  return kind == LossKind::kCrossEntropy ? CrossEntropyLoss(seed, output, values)
                                         : GivenLoss(seed, output, values);
}

double Loss::Run(Backend& backend, std::string_view name, const Operand& output,
                 const void* contents, void* gradient) const {
  const uint64_t seed = SeedFor(seed_, name);
  const LossCall call{kind_, seed, output, contents, gradient};
  if (const std::optional<double> loss = backend.RunLoss(call)) return *loss;
  std::vector<float> values = DownloadFloats(backend, output, contents);
  const double loss = LossOnHost(kind_, seed, output, values);
  UploadFloats(backend, output, gradient, values);
  return loss;
}

}  // namespace ckplan
