#include "lib/executor/core/loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>

#include "lib/base/check.h"
#include "lib/base/rng.h"
#include "lib/executor/scalar/step_loss.h"
#include "lib/problem/ops/bfloat16.h"

namespace ckplan {

namespace {

constexpr float kSqrt3 = 1.7320508F;  // A uniform number in [-sqrt 3, sqrt 3] has variance 1.

template <typename T>
std::vector<std::byte> BytesOf(const std::vector<T>& numbers) {
  std::vector<std::byte> bytes(numbers.size() * sizeof(T));
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

// Returns integers in [0, bound), or all ones without a bound.
std::vector<std::byte> Integers(uint64_t seed, const Operand& operand, int64_t bound) {
  Rng rng(seed);
  const int64_t count = operand.elements();
  const auto size = static_cast<size_t>(SizeOf(operand.type));
  std::vector<std::byte> bytes(static_cast<size_t>(count) * size);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t value = bound > 0 ? rng.Between(0, bound - 1) : 1;
    std::memcpy(bytes.data() + static_cast<size_t>(i) * size, &value, size);  // Little-endian.
  }
  return bytes;
}

struct Range {
  float low = 0;
  float high = 0;
};

Range RangeOf(const StepConstant& constant) {
  switch (constant.used.use) {
    case ParameterUse::kWeight: {
      const float deviation =
          std::sqrt(2.0F / static_cast<float>(std::max<int64_t>(constant.used.fan_in, 1)));
      return {-kSqrt3 * deviation, kSqrt3 * deviation};
    }
    case ParameterUse::kScale:
      return {0.5F, 1.5F};
    case ParameterUse::kEmbedding:
      return {-kSqrt3, kSqrt3};
    case ParameterUse::kShift:
    case ParameterUse::kOther:
      return {-0.1F, 0.1F};
  }
  return {};
}

}  // namespace

uint64_t SeedFor(uint64_t seed, std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325u ^ seed;  // FNV-1a, then mixed.
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return Rng(hash).Next();
}

std::vector<float> UniformFloats(uint64_t seed, int64_t count, float low, float high) {
  Rng rng(seed);
  std::vector<float> floats(static_cast<size_t>(count));
  for (float& value : floats) {
    const float unit = static_cast<float>(rng.Next() >> 40) * 0x1p-24F;  // [0, 1), 24 bits.
    value = low + (high - low) * unit;
  }
  return floats;
}

std::vector<std::byte> SeededConstant(uint64_t seed, const StepConstant& constant) {
  const uint64_t own = SeedFor(seed, constant.name);
  if (constant.operand.type != ElementType::kFloat32) {
    return Integers(own, constant.operand, constant.index_bound);
  }
  const Range range = RangeOf(constant);
  return BytesOf(UniformFloats(own, constant.operand.elements(), range.low, range.high));
}

std::vector<std::byte> SeededInput(uint64_t seed, const StepInput& input) {
  const uint64_t own = SeedFor(seed, input.name);
  if (!IsFloat(input.operand.type)) return Integers(own, input.operand, input.index_bound);
  const std::vector<float> floats = UniformFloats(own, input.operand.elements(), -kSqrt3, kSqrt3);
  return input.operand.type == ElementType::kBFloat16 ? BytesOf(ToBFloat16(floats))
                                                      : BytesOf(floats);
}

namespace {

// Adds numbers in the order given in lib/executor/scalar/step_loss.h.
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
    // The loss uses the gradient as stored, which may be rounded.
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
  CKPLAN_CHECK(entropy.classes > 0, "RequireLoss has rejected outputs without classes");
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
        fmt::format("cross-entropy is undefined for the output \"{}\": its class axis {} "
                    "has no elements; choose the loss \"{}\"",
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
