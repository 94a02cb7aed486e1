// Activation functions.
#include "lib/executor/scalar/activation.h"

#include "lib/executor/cpu/families.h"
#include "lib/executor/cpu/ops/unary.h"
#include "lib/executor/cpu/vector_math.h"

namespace ckplan::cpu {

namespace {

Result<std::unique_ptr<PreparedOp>> PrepareRelu(const OpSpec& spec) {
  if (spec.input(0).type == ElementType::kInt64) {
    return MakeMap<int64_t, int64_t, scalar::IntegerRelu>(spec);
  }
  if (spec.input(0).type == ElementType::kInt32) {
    return MakeMap<int32_t, int32_t, scalar::IntegerRelu>(spec);
  }
  return PrepareUnary<scalar::Relu>(spec);
}

Result<std::unique_ptr<PreparedOp>> PrepareGelu(const OpSpec& spec) {
  if (spec.String("approximate", "none") == "tanh") {
    return PrepareUnary<scalar::GeluTanh<VectorMath>>(spec);
  }
  return PrepareUnary<scalar::GeluErf<VectorMath>>(spec);
}

constexpr OpRow kActivationOps[] = {
    {"Relu", PrepareRelu},
    {"LeakyRelu", PrepareUnary<scalar::LeakyRelu>},
    {"Sigmoid", PrepareUnary<scalar::Sigmoid<VectorMath>>},
    {"Tanh", PrepareUnary<scalar::Tanh<VectorMath>>},
    {"Elu", PrepareUnary<scalar::Elu>},
    {"Selu", PrepareUnary<scalar::Selu>},
    {"Celu", PrepareUnary<scalar::Celu>},
    {"Softplus", PrepareUnary<scalar::Softplus<VectorMath>>},
    {"Softsign", PrepareUnary<scalar::Softsign>},
    {"Gelu", PrepareGelu},
    {"Swish", PrepareUnary<scalar::Swish<VectorMath>>},
    {"Mish", PrepareUnary<scalar::Mish<VectorMath>>},
    {"HardSigmoid", PrepareUnary<scalar::HardSigmoid>},
    {"HardSwish", PrepareUnary<scalar::HardSwish>},
    {"ThresholdedRelu", PrepareUnary<scalar::ThresholdedRelu>},
    {"Shrink", PrepareUnary<scalar::Shrink>},
};

}  // namespace

std::span<const OpRow> ActivationOps() { return kActivationOps; }

}  // namespace ckplan::cpu
