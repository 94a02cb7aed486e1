// Arithmetic operators with two operands.
#include "lib/cpu/ops/binary.h"

#include <cmath>

#include "lib/cpu/families.h"
#include "lib/cpu/integers.h"
#include "lib/cpu/ops/unary.h"
#include "lib/ops/binary.h"

namespace ckplan::cpu {

namespace {

template <typename T>
inline constexpr bool kIsFloat = std::is_same_v<T, float>;

struct Add {
  static constexpr Partial kFirst = {}, kSecond = {};
  template <typename T>
  static T Value(T a, T b) {
    if constexpr (kIsFloat<T>) return a + b;
    if constexpr (!kIsFloat<T>) return WrapAdd(a, b);
  }
  static float First(float, float, float) { return 1; }
  static float Second(float, float, float) { return 1; }
};

struct Sub {
  static constexpr Partial kFirst = {}, kSecond = {};
  template <typename T>
  static T Value(T a, T b) {
    if constexpr (kIsFloat<T>) return a - b;
    if constexpr (!kIsFloat<T>) return WrapSub(a, b);
  }
  static float First(float, float, float) { return 1; }
  static float Second(float, float, float) { return -1; }
};

struct Mul {
  static constexpr Partial kFirst = {.reads_b = true}, kSecond = {.reads_a = true};
  template <typename T>
  static T Value(T a, T b) {
    if constexpr (kIsFloat<T>) return a * b;
    if constexpr (!kIsFloat<T>) return WrapMul(a, b);
  }
  static float First(float, float b, float) { return b; }
  static float Second(float a, float, float) { return a; }
};

struct Div {
  static constexpr Partial kFirst = {.reads_b = true};
  static constexpr Partial kSecond = {.reads_b = true, .reads_y = true};
  template <typename T>
  static T Value(T a, T b) {
    if constexpr (kIsFloat<T>) return a / b;
    if constexpr (!kIsFloat<T>) return SafeDiv(a, b);
  }
  static float First(float, float b, float) { return 1 / b; }
  static float Second(float, float b, float y) { return -y / b; }
};

struct Pow {
  static constexpr Partial kFirst = {.reads_a = true, .reads_b = true};
  static constexpr Partial kSecond = {.reads_a = true, .reads_y = true};
  template <typename T>
  static T Value(T a, T b) {
    if constexpr (kIsFloat<T>) return std::pow(a, b);
    if constexpr (!kIsFloat<T>) {
      if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
      T result = 1;
      for (T base = a, left = b; left > 0; left /= 2, base = WrapMul(base, base)) {
        if (left % 2 != 0) result = WrapMul(result, base);
      }
      return result;
    }
  }
  static float First(float a, float b, float) { return b == 0 ? 0 : b * std::pow(a, b - 1); }
  // At a = 0, y is 0 and the logarithm is infinite, so this returns the limit of the derivative.
  static float Second(float a, float, float y) { return y == 0 ? 0 : y * std::log(a); }
};

struct PRelu {
  static constexpr Partial kFirst = {.reads_a = true, .reads_b = true};
  static constexpr Partial kSecond = {.reads_a = true};
  template <typename T>
  static T Value(T a, T b) {
    return a < 0 ? a * b : a;
  }
  static float First(float a, float b, float) { return a < 0 ? b : 1; }
  static float Second(float a, float, float) { return a < 0 ? a : 0; }
};

// fmod = 1: the result has the sign of the dividend. For floats this is the only valid mode.
struct Remainder {
  static constexpr Partial kFirst = {}, kSecond = {.reads_a = true, .reads_b = true};
  template <typename T>
  static T Value(T a, T b) {
    if constexpr (kIsFloat<T>) return std::fmod(a, b);
    if constexpr (!kIsFloat<T>) return SafeRemainder(a, b);
  }
  static float First(float, float, float) { return 1; }
  static float Second(float a, float b, float) { return -std::trunc(a / b); }
};

// The result has the sign of the divisor.
struct Modulo {
  template <typename T>
  static T Value(T a, T b) {
    const T rest = SafeRemainder(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
  }
};

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
  return Prepared<BinaryOp<PRelu>>(spec);
}

Result<std::unique_ptr<PreparedOp>> PrepareMod(const OpSpec& spec) {
  if (spec.Int("fmod", 0) != 0) return PrepareBinary<Remainder>(spec);
  return PrepareIntegers<Modulo>(spec);
}

// Computes x ^ c with a constant c, the usual case in models, many times faster than std::pow.
struct PowerOf {
  static constexpr Reads kReads = Reads::kInput;
  explicit PowerOf(double known) : exponent(static_cast<float>(known)) {}
  float Value(float x) const { return std::pow(x, exponent); }
  float Slope(float x) const { return exponent == 0 ? 0 : exponent * std::pow(x, exponent - 1); }
  float exponent;
};

template <Reads reads, auto value, auto slope>
struct FixedPower {
  static constexpr Reads kReads = reads;
  float Value(float x) const { return value(x); }
  float Slope(float x) const { return slope(x); }
};
using Square =
    FixedPower<Reads::kInput, [](float x) { return x * x; }, [](float x) { return 2 * x; }>;
using Cube =
    FixedPower<Reads::kInput, [](float x) { return x * x * x; }, [](float x) { return 3 * x * x; }>;
using SquareRoot = FixedPower<Reads::kInput, [](float x) { return std::sqrt(x); },
                              [](float x) { return 0.5F / std::sqrt(x); }>;
using InverseRoot = FixedPower<Reads::kInput, [](float x) { return 1 / std::sqrt(x); },
                               [](float x) { return -0.5F / (x * std::sqrt(x)); }>;

template <typename Op>
std::unique_ptr<PreparedOp> MakePower(const OpSpec& spec, const Op& op) {
  return std::make_unique<UnaryOp<Op>>(spec, op);
}

std::unique_ptr<PreparedOp> MakeKnownPower(const OpSpec& spec, double exponent) {
  if (exponent == 2) return MakePower(spec, Square());
  if (exponent == 3) return MakePower(spec, Cube());
  if (exponent == 0.5) return MakePower(spec, SquareRoot());
  if (exponent == -0.5) return MakePower(spec, InverseRoot());
  return MakePower(spec, PowerOf(exponent));
}

Result<std::unique_ptr<PreparedOp>> PreparePow(const OpSpec& spec) {
  if (const auto exponent = KnownExponent(spec)) return MakeKnownPower(spec, *exponent);
  return PrepareBinary<Pow>(spec);
}

constexpr OpRow kBinaryOps[] = {
    {"Add", PrepareBinary<Add>}, {"Sub", PrepareBinary<Sub>}, {"Mul", PrepareBinary<Mul>},
    {"Div", PrepareBinary<Div>}, {"Mod", PrepareMod},         {"Pow", PreparePow},
    {"PRelu", PreparePRelu},
};

}  // namespace

std::span<const OpRow> BinaryOps() { return kBinaryOps; }

}  // namespace ckplan::cpu
