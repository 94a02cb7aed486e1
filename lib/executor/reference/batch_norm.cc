// BatchNormalization.
#include <cmath>

#include "lib/executor/reference/families.h"
#include "lib/executor/reference/moments.h"

namespace ckplan::reference {

namespace {

void BatchNormalization(const OpSpec& spec, std::span<const Tensor> inputs,
                        std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  const auto moments = MomentsBy(x, [](const Index& at) { return at.size() > 1 ? at[1] : 0; });
  ForEach(x.dims, [&](const Index& at, int64_t i) {
    const int64_t c = at.size() > 1 ? at[1] : 0;
    const Moments& of = moments.at(c);
    outputs[0][i] =
        (x[i] - of.mean) / std::sqrt(of.variance + Epsilon(spec)) * inputs[1][c] + inputs[2][c];
    if (outputs.size() > 1 && outputs[1].is_present) outputs[1][c] = of.mean;
    if (outputs.size() > 2 && outputs[2].is_present) outputs[2][c] = of.variance;
  });
}

constexpr FunctionRow kBatchNormReferences[] = {
    {"BatchNormalization", BatchNormalization},
};

constexpr CaseRow kBatchNormCases[] = {
    {"BatchNormalization", "f3x4x5x6 f4! f4! f4* f4* -> f3x4x5x6"},
    {"BatchNormalization", "f3x4x5x6~ f4! f4! f4* f4* -> f3x4x5x6", "epsilon=0.01"},
    {"BatchNormalization", "f3x4x5x6 f4! f4! f4* f4* -> f3x4x5x6", "training_mode=1"},
    {"BatchNormalization", "f3x4x5x6* f4* f4* f4* f4* -> f3x4x5x6 f4 f4", "training_mode=1"},
    {"BatchNormalization", "f7x4 f4! f4! f4* f4* -> f7x4"},
    {"BatchNormalization", "f7x4x9 f4! f4! f4* f4* -> f7x4x9"},
    {"BatchNormalization", "f2x3x2x3x4 f3! f3! f3* f3* -> f2x3x2x3x4"},
    {"BatchNormalization", "f1x2x60x60 f2! f2! f2* f2* -> f1x2x60x60"},
    {"BatchNormalization", "f8x2x40x60(9..11) f2! f2! f2* f2* -> f8x2x40x60", "", 5e-5},
    {"BatchNormalization", "f4x2x8x9(199..201) f2! f2! f2* f2* -> f4x2x8x9", "", 2e-4},
    {"BatchNormalization", "f4x2x7x9(199..201) f2! f2! f2* f2* -> f4x2x7x9", "", 2e-4},
    {"BatchNormalization", "f8x2x41x61 f2! f2! f2* f2* -> f8x2x41x61"},
    {"BatchNormalization", "f8x2x80x100 f2! f2! f2* f2* -> f8x2x80x100"},
    {"BatchNormalization", "f700x9 f9! f9! f9* f9* -> f700x9"},
};

}  // namespace

std::span<const FunctionRow> BatchNormReferences() { return kBatchNormReferences; }
std::span<const CaseRow> BatchNormCases() { return kBatchNormCases; }

}  // namespace ckplan::reference
