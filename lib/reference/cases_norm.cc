#include "lib/reference/op_case.h"

namespace ckplan::reference {

namespace {

constexpr CaseRow kRows[] = {
    {"BatchNormalization", "f3x4x5x6 f4! f4! f4* f4* -> f3x4x5x6"},
    {"BatchNormalization", "f3x4x5x6~ f4! f4! f4* f4* -> f3x4x5x6", "epsilon=0.01"},
    {"BatchNormalization", "f3x4x5x6 f4! f4! f4* f4* -> f3x4x5x6", "training_mode=1"},
    {"BatchNormalization", "f3x4x5x6* f4* f4* f4* f4* -> f3x4x5x6 f4 f4", "training_mode=1"},
    {"BatchNormalization", "f7x4 f4! f4! f4* f4* -> f7x4"},
    {"BatchNormalization", "f7x4x9 f4! f4! f4* f4* -> f7x4x9"},
    {"BatchNormalization", "f2x3x2x3x4 f3! f3! f3* f3* -> f2x3x2x3x4"},
    {"BatchNormalization", "f1x2x60x60 f2! f2! f2* f2* -> f1x2x60x60"},
};

}  // namespace

std::span<const CaseRow> NormCases() { return kRows; }

}  // namespace ckplan::reference
