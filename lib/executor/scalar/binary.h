// Functions of two numbers that all backends share: arithmetic and logic.
#pragma once

#include <math.h>

#include <type_traits>

#include "lib/executor/scalar/integers.h"
#include "lib/executor/scalar/unary.h"

namespace ckplan::scalar {

// Arithmetic operators with two operands. An operator is a struct:
//
//   struct Div {
//     static constexpr Partial kFirst = {.reads_b = true};                    operands of dy/da
//     static constexpr Partial kSecond = {.reads_b = true, .reads_y = true};  operands of dy/db
//     template <typename T> CKPLAN_DEVICE static T Value(T a, T b);
//     CKPLAN_DEVICE static float First(float a, float b, float y);    dy/da
//     CKPLAN_DEVICE static float Second(float a, float b, float y);   dy/db
//   };
//
// Operands that First and Second do not read are passed as undefined numbers.
struct Partial {
  bool reads_a = false;
  bool reads_b = false;
  bool reads_y = false;
};

template <typename T>
inline constexpr bool kIsFloat = std::is_same_v<T, float>;

struct Add {
  static constexpr Partial kFirst = {}, kSecond = {};
  template <typename T>
  CKPLAN_DEVICE static T Value(T a, T b) {
    if constexpr (kIsFloat<T>) {
      return a + b;
    } else {
      return WrapAdd(a, b);
    }
  }
  CKPLAN_DEVICE static float First(float, float, float) { return 1; }
  CKPLAN_DEVICE static float Second(float, float, float) { return 1; }
};

struct Sub {
  static constexpr Partial kFirst = {}, kSecond = {};
  template <typename T>
  CKPLAN_DEVICE static T Value(T a, T b) {
    if constexpr (kIsFloat<T>) {
      return a - b;
    } else {
      return WrapSub(a, b);
    }
  }
  CKPLAN_DEVICE static float First(float, float, float) { return 1; }
  CKPLAN_DEVICE static float Second(float, float, float) { return -1; }
};

struct Mul {
  static constexpr Partial kFirst = {.reads_b = true}, kSecond = {.reads_a = true};
  template <typename T>
  CKPLAN_DEVICE static T Value(T a, T b) {
    if constexpr (kIsFloat<T>) {
      return a * b;
    } else {
      return WrapMul(a, b);
    }
  }
  CKPLAN_DEVICE static float First(float, float b, float) { return b; }
  CKPLAN_DEVICE static float Second(float a, float, float) { return a; }
};

struct Div {
  static constexpr Partial kFirst = {.reads_b = true};
  static constexpr Partial kSecond = {.reads_b = true, .reads_y = true};
  template <typename T>
  CKPLAN_DEVICE static T Value(T a, T b) {
    if constexpr (kIsFloat<T>) {
      return a / b;
    } else {
      return SafeDiv(a, b);
    }
  }
  CKPLAN_DEVICE static float First(float, float b, float) { return 1 / b; }
  CKPLAN_DEVICE static float Second(float, float b, float y) { return -y / b; }
};

struct Pow {
  static constexpr Partial kFirst = {.reads_a = true, .reads_b = true};
  static constexpr Partial kSecond = {.reads_a = true, .reads_y = true};
  template <typename T>
  CKPLAN_DEVICE static T Value(T a, T b) {
    if constexpr (kIsFloat<T>) {
      return powf(a, b);
    } else {
      if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
      T result = 1;
      for (T base = a, left = b; left > 0; left /= 2, base = WrapMul(base, base)) {
        if (left % 2 != 0) result = WrapMul(result, base);
      }
      return result;
    }
  }
  CKPLAN_DEVICE static float First(float a, float b, float) {
    return b == 0 ? 0 : b * powf(a, b - 1);
  }
  // At a = 0, y is 0 and the logarithm is infinite, so this returns the limit of the derivative.
  CKPLAN_DEVICE static float Second(float a, float, float y) { return y == 0 ? 0 : y * logf(a); }
};

struct PRelu {
  static constexpr Partial kFirst = {.reads_a = true, .reads_b = true};
  static constexpr Partial kSecond = {.reads_a = true};
  template <typename T>
  CKPLAN_DEVICE static T Value(T a, T b) {
    return a < 0 ? a * b : a;
  }
  CKPLAN_DEVICE static float First(float a, float b, float) { return a < 0 ? b : 1; }
  CKPLAN_DEVICE static float Second(float a, float, float) { return a < 0 ? a : 0; }
};

// fmod = 1: the result has the sign of the dividend. For floats this is the only valid mode.
struct Remainder {
  static constexpr Partial kFirst = {}, kSecond = {.reads_a = true, .reads_b = true};
  template <typename T>
  CKPLAN_DEVICE static T Value(T a, T b) {
    if constexpr (kIsFloat<T>) {
      return fmodf(a, b);
    } else {
      return SafeRemainder(a, b);
    }
  }
  CKPLAN_DEVICE static float First(float, float, float) { return 1; }
  CKPLAN_DEVICE static float Second(float a, float b, float) { return -truncf(a / b); }
};

// The result has the sign of the divisor.
struct Modulo {
  template <typename T>
  CKPLAN_DEVICE static T Value(T a, T b) {
    const T rest = SafeRemainder(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
  }
};

// The larger and the smaller operand; NaN if either is NaN.
struct Larger {
  template <typename T>
  CKPLAN_DEVICE static T Value(T a, T b) {
    return a < b || b != b ? b : a;
  }
};
struct Smaller {
  template <typename T>
  CKPLAN_DEVICE static T Value(T a, T b) {
    return a > b || b != b ? b : a;
  }
};

// x ^ c for a constant c, the usual case in models and many times faster than powf.
struct PowerOf {
  static constexpr Reads kReads = Reads::kInput;
  CKPLAN_DEVICE float Value(float x) const { return powf(x, exponent); }
  CKPLAN_DEVICE float Slope(float x) const {
    return exponent == 0 ? 0 : exponent * powf(x, exponent - 1);
  }
  float exponent;
};
struct Square {
  static constexpr Reads kReads = Reads::kInput;
  CKPLAN_DEVICE float Value(float x) const { return x * x; }
  CKPLAN_DEVICE float Slope(float x) const { return 2 * x; }
};
struct Cube {
  static constexpr Reads kReads = Reads::kInput;
  CKPLAN_DEVICE float Value(float x) const { return x * x * x; }
  CKPLAN_DEVICE float Slope(float x) const { return 3 * x * x; }
};
struct SquareRoot {
  static constexpr Reads kReads = Reads::kInput;
  CKPLAN_DEVICE float Value(float x) const { return sqrtf(x); }
  CKPLAN_DEVICE float Slope(float x) const { return 0.5F / sqrtf(x); }
};
struct InverseRoot {
  static constexpr Reads kReads = Reads::kInput;
  CKPLAN_DEVICE float Value(float x) const { return 1 / sqrtf(x); }
  CKPLAN_DEVICE float Slope(float x) const { return -0.5F / (x * sqrtf(x)); }
};

// Comparisons, boolean and bitwise logic: functions Value(a, b) of two operands of one type.

#define CKPLAN_TEST(Name, expression)           \
  struct Name {                                 \
    template <typename T>                       \
    CKPLAN_DEVICE static bool Value(T a, T b) { \
      return (expression);                      \
    }                                           \
  }

CKPLAN_TEST(Equal, a == b);
CKPLAN_TEST(Less, a < b);
CKPLAN_TEST(LessOrEqual, a <= b);
CKPLAN_TEST(Greater, a > b);
CKPLAN_TEST(GreaterOrEqual, a >= b);
CKPLAN_TEST(And, a != 0 && b != 0);
CKPLAN_TEST(Or, a != 0 || b != 0);
CKPLAN_TEST(Xor, (a != 0) != (b != 0));

#undef CKPLAN_TEST

#define CKPLAN_BITS(Name, expression)        \
  struct Name {                              \
    template <typename T>                    \
    CKPLAN_DEVICE static T Value(T a, T b) { \
      return (expression);                   \
    }                                        \
  }

CKPLAN_BITS(BitwiseAnd, a& b);
CKPLAN_BITS(BitwiseOr, a | b);
CKPLAN_BITS(BitwiseXor, a ^ b);

#undef CKPLAN_BITS

}  // namespace ckplan::scalar
