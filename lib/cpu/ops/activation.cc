// Activation functions. Where backward may read only the output, the slope is computed from the
// output.
#include "lib/cpu/families.h"
#include "lib/cpu/ops/unary.h"
#include "lib/cpu/vector_math.h"

namespace ckplan::cpu {

namespace {

float Attribute(const OpSpec& spec, std::string_view name, double otherwise) {
  return static_cast<float>(spec.Float(name, otherwise));
}

struct Relu : PlainUnary<Reads::kOutput> {
  using PlainUnary::PlainUnary;
  float Value(float x) const { return x < 0 ? 0 : x; }
  float Slope(float y) const { return y > 0 ? 1.0F : 0.0F; }
};

struct LeakyRelu {
  static constexpr Reads kReads = Reads::kOutput;
  explicit LeakyRelu(const OpSpec& spec) : alpha(Attribute(spec, "alpha", 0.01)) {}
  float Value(float x) const { return x < 0 ? alpha * x : x; }
  float Slope(float y) const { return y > 0 ? 1.0F : alpha; }
  float alpha;
};

struct SigmoidOp : PlainUnary<Reads::kOutput> {
  using PlainUnary::PlainUnary;
  float Value(float x) const { return Sigmoid(x); }
  float Slope(float y) const { return y * (1 - y); }
};

struct TanhOp : PlainUnary<Reads::kOutput> {
  using PlainUnary::PlainUnary;
  float Value(float x) const { return Tanh(x); }
  float Slope(float y) const { return 1 - y * y; }
};

struct Elu {
  static constexpr Reads kReads = Reads::kOutput;
  explicit Elu(const OpSpec& spec) : alpha(Attribute(spec, "alpha", 1.0)) {}
  float Value(float x) const { return x < 0 ? alpha * std::expm1(x) : x; }
  float Slope(float y) const { return y > 0 ? 1.0F : y + alpha; }
  float alpha;
};

struct Selu {
  static constexpr Reads kReads = Reads::kOutput;
  explicit Selu(const OpSpec& spec)
      : gamma(Attribute(spec, "gamma", 1.0507009873554805)),
        scale(gamma * Attribute(spec, "alpha", 1.6732632423543772)) {}
  float Value(float x) const { return x < 0 ? scale * std::expm1(x) : gamma * x; }
  float Slope(float y) const { return y > 0 ? gamma : y + scale; }
  float gamma, scale;
};

struct Celu {
  static constexpr Reads kReads = Reads::kOutput;
  explicit Celu(const OpSpec& spec) : alpha(Attribute(spec, "alpha", 1.0)) {}
  float Value(float x) const { return x < 0 ? alpha * std::expm1(x / alpha) : x; }
  float Slope(float y) const { return y > 0 ? 1.0F : y / alpha + 1; }
  float alpha;
};

struct SoftplusOp : PlainUnary<Reads::kInput> {
  using PlainUnary::PlainUnary;
  float Value(float x) const { return Softplus(x); }
  float Slope(float x) const { return Sigmoid(x); }
};

struct Softsign : PlainUnary<Reads::kInput> {
  using PlainUnary::PlainUnary;
  float Value(float x) const { return x / (1 + std::abs(x)); }
  float Slope(float x) const {
    const float d = 1 + std::abs(x);
    return 1 / (d * d);
  }
};

struct GeluErf : PlainUnary<Reads::kInput> {
  using PlainUnary::PlainUnary;
  static float Phi(float x) { return 0.5F * (1 + Erf(x * 0.70710678118654752F)); }
  float Value(float x) const { return x * Phi(x); }
  float Slope(float x) const { return Phi(x) + x * Exp(-0.5F * x * x) * 0.39894228040143268F; }
};

struct GeluTanh : PlainUnary<Reads::kInput> {
  using PlainUnary::PlainUnary;
  static constexpr float kScale = 0.79788456080286536F;  // sqrt(2 / pi)
  static float Inner(float x) { return Tanh(kScale * (x + 0.044715F * x * x * x)); }
  float Value(float x) const { return 0.5F * x * (1 + Inner(x)); }
  float Slope(float x) const {
    const float t = Inner(x);
    const float inner_slope = kScale * (1 + 3 * 0.044715F * x * x);
    return 0.5F * (1 + t) + 0.5F * x * (1 - t * t) * inner_slope;
  }
};

struct Swish {
  static constexpr Reads kReads = Reads::kInput;
  explicit Swish(const OpSpec& spec) : alpha(Attribute(spec, "alpha", 1.0)) {}
  float Value(float x) const { return x * Sigmoid(alpha * x); }
  float Slope(float x) const {
    const float s = Sigmoid(alpha * x);
    return s + alpha * x * s * (1 - s);
  }
  float alpha;
};

struct Mish : PlainUnary<Reads::kInput> {
  using PlainUnary::PlainUnary;
  float Value(float x) const { return x * Tanh(Softplus(x)); }
  float Slope(float x) const {
    const float t = Tanh(Softplus(x));
    return t + x * (1 - t * t) * Sigmoid(x);
  }
};

struct HardSigmoid {
  static constexpr Reads kReads = Reads::kInput;
  explicit HardSigmoid(const OpSpec& spec)
      : HardSigmoid(Attribute(spec, "alpha", 0.2), Attribute(spec, "beta", 0.5)) {}
  HardSigmoid(float slope, float offset) : alpha(slope), beta(offset) {}
  float Value(float x) const { return std::max(0.0F, std::min(1.0F, alpha * x + beta)); }
  float Slope(float x) const {
    const float line = alpha * x + beta;
    return line > 0 && line < 1 ? alpha : 0.0F;
  }
  float alpha, beta;
};

struct HardSwish : PlainUnary<Reads::kInput> {
  using PlainUnary::PlainUnary;
  float Value(float x) const { return x * HardSigmoid(1.0F / 6, 0.5F).Value(x); }
  float Slope(float x) const {
    const float inside = x / 3 + 0.5F;
    return x <= -3 ? 0.0F : x >= 3 ? 1.0F : inside;
  }
};

struct ThresholdedRelu {
  static constexpr Reads kReads = Reads::kInput;
  explicit ThresholdedRelu(const OpSpec& spec) : alpha(Attribute(spec, "alpha", 1.0)) {}
  float Value(float x) const { return x > alpha ? x : 0; }
  float Slope(float x) const { return x > alpha ? 1.0F : 0.0F; }
  float alpha;
};

struct Shrink {
  static constexpr Reads kReads = Reads::kInput;
  explicit Shrink(const OpSpec& spec)
      : lambda(Attribute(spec, "lambd", 0.5)), bias(Attribute(spec, "bias", 0.0)) {}
  float Value(float x) const { return x < -lambda ? x + bias : x > lambda ? x - bias : 0; }
  float Slope(float x) const { return x < -lambda || x > lambda ? 1.0F : 0.0F; }
  float lambda, bias;
};

struct IntegerRelu {
  template <typename T>
  static T Value(T x) {
    return x < 0 ? 0 : x;
  }
};

Result<std::unique_ptr<PreparedOp>> PrepareRelu(const OpSpec& spec) {
  if (spec.input(0).type == ElementType::kInt64) {
    return MakeMap<int64_t, int64_t, IntegerRelu>(spec);
  }
  if (spec.input(0).type == ElementType::kInt32) {
    return MakeMap<int32_t, int32_t, IntegerRelu>(spec);
  }
  return PrepareUnary<Relu>(spec);
}

Result<std::unique_ptr<PreparedOp>> PrepareGelu(const OpSpec& spec) {
  if (spec.String("approximate", "none") == "tanh") return PrepareUnary<GeluTanh>(spec);
  return PrepareUnary<GeluErf>(spec);
}

constexpr OpRow kActivationOps[] = {
    {"Relu", PrepareRelu},
    {"LeakyRelu", PrepareUnary<LeakyRelu>},
    {"Sigmoid", PrepareUnary<SigmoidOp>},
    {"Tanh", PrepareUnary<TanhOp>},
    {"Elu", PrepareUnary<Elu>},
    {"Selu", PrepareUnary<Selu>},
    {"Celu", PrepareUnary<Celu>},
    {"Softplus", PrepareUnary<SoftplusOp>},
    {"Softsign", PrepareUnary<Softsign>},
    {"Gelu", PrepareGelu},
    {"Swish", PrepareUnary<Swish>},
    {"Mish", PrepareUnary<Mish>},
    {"HardSigmoid", PrepareUnary<HardSigmoid>},
    {"HardSwish", PrepareUnary<HardSwish>},
    {"ThresholdedRelu", PrepareUnary<ThresholdedRelu>},
    {"Shrink", PrepareUnary<Shrink>},
};

}  // namespace

std::span<const OpRow> ActivationOps() { return kActivationOps; }

}  // namespace ckplan::cpu
