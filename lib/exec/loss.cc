#include "lib/exec/loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lib/base/check.h"
#include "lib/base/rng.h"
#include "lib/exec/seeded.h"
#include "lib/ops/bfloat16.h"

namespace ckplan {

namespace {

// Returns the mean softmax cross-entropy over all positions except the class axis. Replaces the
// scores by their gradients.
double CrossEntropy(uint64_t seed, const std::vector<int64_t>& dims, std::vector<float>& scores) {
  const size_t axis = ClassAxis(dims);
  int64_t outer = 1;
  int64_t inner = 1;
  for (size_t i = 0; i < dims.size(); ++i) (i < axis ? outer : inner) *= i == axis ? 1 : dims[i];
  const int64_t classes = dims.empty() ? 1 : dims[axis];
  CKPLAN_CHECK(classes > 0, "RequireLoss refuses outputs without classes");
  const auto positions = static_cast<double>(outer * inner);
  Rng rng(seed);
  double loss = 0;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      float* const first = scores.data() + o * classes * inner + i;
      const int64_t label = rng.Between(0, classes - 1);
      float largest = first[0];
      for (int64_t c = 1; c < classes; ++c) largest = std::max(largest, first[c * inner]);
      double sum = 0;
      for (int64_t c = 0; c < classes; ++c)
        sum += std::exp(static_cast<double>(first[c * inner] - largest));
      const double label_score = static_cast<double>(first[label * inner] - largest);
      loss += (std::log(sum) - label_score) / positions;
      for (int64_t c = 0; c < classes; ++c) {
        const double probability = std::exp(static_cast<double>(first[c * inner] - largest)) / sum;
        first[c * inner] = static_cast<float>((probability - (c == label ? 1 : 0)) / positions);
      }
    }
  }
  return loss;
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

size_t ClassAxis(const std::vector<int64_t>& dims) {
  if (dims.size() == 3) return 2;
  return dims.size() < 2 ? 0 : 1;
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

double Loss::Run(Backend& backend, std::string_view name, const Operand& output,
                 const void* contents, void* gradient) const {
  const int64_t count = output.elements();
  const uint64_t seed = SeedFor(seed_, name);
  std::vector<float> values = DownloadFloats(backend, output, contents);
  double loss = 0;
  if (kind_ == LossKind::kCrossEntropy) {
    loss = CrossEntropy(seed, output.dims, values);
  } else {
    const float bound = 1.0F / std::sqrt(static_cast<float>(std::max<int64_t>(count, 1)));
    std::vector<float> given = UniformFloats(seed, count, -bound, bound);
    // The loss is the inner product with the gradient as it is stored, which may be rounded.
    if (output.type == ElementType::kBFloat16) given = FromBFloat16(ToBFloat16(given));
    for (size_t i = 0; i < given.size(); ++i) {
      loss += static_cast<double>(values[i]) * static_cast<double>(given[i]);
    }
    values = given;
  }
  UploadFloats(backend, output, gradient, values);
  return loss;
}

}  // namespace ckplan
