// Arithmetic operators with two operands.
#include "lib/executor/cuda/families.h"
#include "lib/executor/cuda/ops/binary.h"
#include "lib/executor/cuda/ops/unary.h"
#include "lib/executor/scalar/binary.h"
#include "lib/problem/ops/elementwise.h"

namespace ckplan::cuda {

namespace {

template <typename Op>
Result<std::unique_ptr<PreparedOp>> PrepareIntegers(const OpSpec& spec, Device& device) {
  if (!FitsDevice(BinaryLayout(spec))) return Unsupported(spec, kTooManyAxes);
  if (spec.input(0).type == ElementType::kInt32) {
    return Prepared<BinaryMap<int32_t, int32_t, Op>>(spec, device);
  }
  return Prepared<BinaryMap<int64_t, int64_t, Op>>(spec, device);
}

template <typename Op>
Result<std::unique_ptr<PreparedOp>> PrepareFloats(const OpSpec& spec, Device& device) {
  if (!FitsDevice(BinaryLayout(spec))) return Unsupported(spec, kTooManyAxes);
  return Prepared<BinaryOp<Op>>(spec, device);
}

template <typename Op>
Result<std::unique_ptr<PreparedOp>> PrepareBinary(const OpSpec& spec, Device& device) {
  if (IsFloat(spec.input(0).type)) return PrepareFloats<Op>(spec, device);
  return PrepareIntegers<Op>(spec, device);
}

Result<std::unique_ptr<PreparedOp>> PreparePRelu(const OpSpec& spec, Device& device) {
  return PrepareFloats<scalar::PRelu>(spec, device);
}

Result<std::unique_ptr<PreparedOp>> PrepareMod(const OpSpec& spec, Device& device) {
  if (spec.Int("fmod", 0) != 0) return PrepareBinary<scalar::Remainder>(spec, device);
  return PrepareIntegers<scalar::Modulo>(spec, device);
}

Result<std::unique_ptr<PreparedOp>> PrepareKnownPower(const OpSpec& spec, Device& device,
                                                      double exponent) {
  if (exponent == 2) return Prepared<UnaryOp<scalar::Square>>(spec, device, scalar::Square());
  if (exponent == 3) return Prepared<UnaryOp<scalar::Cube>>(spec, device, scalar::Cube());
  if (exponent == 0.5)
    return Prepared<UnaryOp<scalar::SquareRoot>>(spec, device, scalar::SquareRoot());
  if (exponent == -0.5)
    return Prepared<UnaryOp<scalar::InverseRoot>>(spec, device, scalar::InverseRoot());
  return Prepared<UnaryOp<scalar::PowerOf>>(spec, device,
                                            scalar::PowerOf{static_cast<float>(exponent)});
}

Result<std::unique_ptr<PreparedOp>> PreparePow(const OpSpec& spec, Device& device) {
  if (const auto exponent = KnownExponent(spec)) return PrepareKnownPower(spec, device, *exponent);
  return PrepareBinary<scalar::Pow>(spec, device);
}

constexpr OpRow kBinaryOps[] = {
    {"Add", PrepareBinary<scalar::Add>},
    {"Sub", PrepareBinary<scalar::Sub>},
    {"Mul", PrepareBinary<scalar::Mul>},
    {"Div", PrepareBinary<scalar::Div>},
    {"Mod", PrepareMod},
    {"Pow", PreparePow},
    {"PRelu", PreparePRelu},
};

}  // namespace

std::span<const OpRow> BinaryOps() { return kBinaryOps; }

}  // namespace ckplan::cuda
