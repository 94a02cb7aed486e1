// Comparisons, boolean and bitwise logic: functions Value(a, b) of two operands of one type.
#pragma once

#include "lib/executor/scalar/device_function.h"

namespace ckplan::scalar {

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
