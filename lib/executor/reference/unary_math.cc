// Functions of one number other than activations.
#include <cmath>

#include "lib/executor/reference/families.h"
#include "lib/executor/reference/scalar_map.h"

namespace ckplan::reference {

namespace {

double IsInfinite(const OpSpec& spec, double x) {
  if (!std::isinf(x)) return 0;
  return spec.Int(x < 0 ? "detect_negative" : "detect_positive", 1) != 0 ? 1 : 0;
}

constexpr FunctionRow kUnaryMathReferences[] = {
    {"Exp", CKPLAN_MAP(std::exp(x))},
    {"Sqrt", CKPLAN_MAP(std::sqrt(x))},
    {"Reciprocal", CKPLAN_MAP(1 / x)},
    {"Tan", CKPLAN_MAP(std::tan(x))},
    {"Log", CKPLAN_MAP(std::log(x))},
    {"Abs", CKPLAN_MAP(std::abs(x))},
    {"Erf", CKPLAN_MAP(std::erf(x))},
    {"Sin", CKPLAN_MAP(std::sin(x))},
    {"Cos", CKPLAN_MAP(std::cos(x))},
    {"Asin", CKPLAN_MAP(std::asin(x))},
    {"Acos", CKPLAN_MAP(std::acos(x))},
    {"Atan", CKPLAN_MAP(std::atan(x))},
    {"Sinh", CKPLAN_MAP(std::sinh(x))},
    {"Cosh", CKPLAN_MAP(std::cosh(x))},
    {"Asinh", CKPLAN_MAP(std::asinh(x))},
    {"Acosh", CKPLAN_MAP(std::acosh(x))},
    {"Atanh", CKPLAN_MAP(std::atanh(x))},
    {"Neg", CKPLAN_MAP(-x)},
    {"Sign", CKPLAN_MAP(x > 0   ? 1
                        : x < 0 ? -1
                                : 0)},
    {"Floor", CKPLAN_MAP(std::floor(x))},
    {"Ceil", CKPLAN_MAP(std::ceil(x))},
    {"Round", CKPLAN_MAP(std::nearbyint(x))},  // Halves round to even.
    {"Not", CKPLAN_MAP(x == 0 ? 1 : 0)},
    {"IsNaN", CKPLAN_MAP(std::isnan(x) ? 1 : 0)},
    {"IsInf", Map<IsInfinite>},
};

constexpr CaseRow kUnaryMathCases[] = {
    {"Exp", "f31 -> f31"},
    {"Sqrt", "f31(0.1..4) -> f31"},
    {"Reciprocal", "f31(0.2..3) -> f31", "", 1e-4},
    {"Tan", "f31(-1..1) -> f31"},
    {"Log", "f31(0.1..4) -> f31"},
    {"Abs", "f31 -> f31"},
    {"Abs", "i5(-3..3) -> i5"},
    {"Abs", "n5(-3..3) -> n5"},
    {"Erf", "f31 -> f31"},
    {"Sin", "f31(-7..7) -> f31"},
    {"Cos", "f31(-7..7) -> f31"},
    {"Asin", "f31(-0.9..0.9) -> f31"},
    {"Acos", "f31(-0.9..0.9) -> f31"},
    {"Atan", "f31 -> f31"},
    {"Sinh", "f31 -> f31"},
    {"Cosh", "f31 -> f31"},
    {"Asinh", "f31 -> f31"},
    {"Acosh", "f31(1.1..4) -> f31"},
    {"Atanh", "f31(-0.9..0.9) -> f31"},
    {"Neg", "f31 -> f31"},
    {"Neg", "fs -> fs"},
    {"Neg", "i5(-3..3) -> i5"},
    {"Neg", "n5(-3..3) -> n5"},
    {"Sign", "f31 -> f31"},
    {"Sign", "i5(-3..3) -> i5"},
    {"Floor", "f31 -> f31"},
    {"Ceil", "f31 -> f31"},
    {"Round", "f7@[-2.5,-1.5,-0.5,0.5,1.5,2.5,2.6] -> f7"},
    {"Not", "b9 -> b9"},
    {"IsNaN", "f4@[0,nan,1,inf] -> b4"},
    {"IsInf", "f4@[-inf,nan,1,inf] -> b4"},
    {"IsInf", "f4@[-inf,nan,1,inf] -> b4", "detect_negative=0"},
    {"IsInf", "f4@[-inf,nan,1,inf] -> b4", "detect_positive=0"},
};

}  // namespace

std::span<const FunctionRow> UnaryMathReferences() { return kUnaryMathReferences; }
std::span<const CaseRow> UnaryMathCases() { return kUnaryMathCases; }

}  // namespace ckplan::reference
