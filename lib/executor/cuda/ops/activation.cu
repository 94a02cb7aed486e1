// Activation functions.
#include "lib/executor/cuda/families.h"
#include "lib/executor/cuda/ops/unary.h"
#include "lib/executor/cuda/scalar_math.h"
#include "lib/executor/scalar/activation.h"

namespace ckplan::cuda {

namespace {

Result<std::unique_ptr<PreparedOp>> PrepareRelu(const OpSpec& spec, Device& device) {
  if (spec.input(0).type == ElementType::kInt64) {
    return Prepared<MapOp<int64_t, int64_t, scalar::IntegerRelu>>(spec, device);
  }
  if (spec.input(0).type == ElementType::kInt32) {
    return Prepared<MapOp<int32_t, int32_t, scalar::IntegerRelu>>(spec, device);
  }
  return PrepareUnary<scalar::Relu>(spec, device);
}

Result<std::unique_ptr<PreparedOp>> PrepareGelu(const OpSpec& spec, Device& device) {
  if (spec.String("approximate", "none") == "tanh") {
    return PrepareUnary<scalar::GeluTanh<DeviceMath>>(spec, device);
  }
  return PrepareUnary<scalar::GeluErf<DeviceMath>>(spec, device);
}

constexpr OpRow kActivationOps[] = {
    {"Relu", PrepareRelu},
    {"LeakyRelu", PrepareUnary<scalar::LeakyRelu>},
    {"Sigmoid", PrepareUnary<scalar::Sigmoid<DeviceMath>>},
    {"Tanh", PrepareUnary<scalar::Tanh<DeviceMath>>},
    {"Elu", PrepareUnary<scalar::Elu>},
    {"Selu", PrepareUnary<scalar::Selu>},
    {"Celu", PrepareUnary<scalar::Celu>},
    {"Softplus", PrepareUnary<scalar::Softplus<DeviceMath>>},
    {"Softsign", PrepareUnary<scalar::Softsign>},
    {"Gelu", PrepareGelu},
    {"Swish", PrepareUnary<scalar::Swish<DeviceMath>>},
    {"Mish", PrepareUnary<scalar::Mish<DeviceMath>>},
    {"HardSigmoid", PrepareUnary<scalar::HardSigmoid>},
    {"HardSwish", PrepareUnary<scalar::HardSwish>},
    {"ThresholdedRelu", PrepareUnary<scalar::ThresholdedRelu>},
    {"Shrink", PrepareUnary<scalar::Shrink>},
};

}  // namespace

std::span<const OpRow> ActivationOps() { return kActivationOps; }

}  // namespace ckplan::cuda
