// Arithmetic operators with two operands.
#include "lib/executor/cpu/ops/binary.h"

#include "lib/executor/cpu/families.h"
#include "lib/executor/cpu/ops/unary.h"
#include "lib/executor/scalar/binary.h"
#include "lib/problem/ops/elementwise.h"

namespace ckplan::cpu {

namespace {

template <typename Op>
Result<std::unique_ptr<PreparedOp>> PrepareIntegers(const OpSpec& spec) {
  if (spec.input(0).type == ElementType::kInt32) {
    return Prepared<BinaryMap<int32_t, int32_t, Op>>(spec);
  }
  return Prepared<BinaryMap<int64_t, int64_t, Op>>(spec);
}

template <typename Op>
Result<std::unique_ptr<PreparedOp>> PrepareBinary(const OpSpec& spec) {
  if (spec.input(0).type == ElementType::kFloat32) return Prepared<BinaryOp<Op>>(spec);
  return PrepareIntegers<Op>(spec);
}

Result<std::unique_ptr<PreparedOp>> PreparePRelu(const OpSpec& spec) {
  return Prepared<BinaryOp<scalar::PRelu>>(spec);
}

Result<std::unique_ptr<PreparedOp>> PrepareMod(const OpSpec& spec) {
  if (spec.Int("fmod", 0) != 0) return PrepareBinary<scalar::Remainder>(spec);
  return PrepareIntegers<scalar::Modulo>(spec);
}

template <typename Op>
std::unique_ptr<PreparedOp> MakePower(const OpSpec& spec, const Op& op) {
  return std::make_unique<UnaryOp<Op>>(spec, op);
}

std::unique_ptr<PreparedOp> MakeKnownPower(const OpSpec& spec, double exponent) {
  if (exponent == 2) return MakePower(spec, scalar::Square());
  if (exponent == 3) return MakePower(spec, scalar::Cube());
  if (exponent == 0.5) return MakePower(spec, scalar::SquareRoot());
  if (exponent == -0.5) return MakePower(spec, scalar::InverseRoot());
  return MakePower(spec, scalar::PowerOf{static_cast<float>(exponent)});
}

Result<std::unique_ptr<PreparedOp>> PreparePow(const OpSpec& spec) {
  if (const auto exponent = KnownExponent(spec)) return MakeKnownPower(spec, *exponent);
  return PrepareBinary<scalar::Pow>(spec);
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

}  // namespace ckplan::cpu
