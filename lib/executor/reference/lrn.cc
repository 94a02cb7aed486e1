// Local response normalization.
#include <algorithm>
#include <cmath>

#include "lib/executor/reference/families.h"

namespace ckplan::reference {

namespace {

void Lrn(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  const int64_t size = spec.Int("size", 1);
  ForEach(x.dims, [&](const Index& at, int64_t i) {
    double sum = 0;
    const int64_t first = at[1] - (size - 1) / 2;
    for (int64_t c = std::max<int64_t>(0, first); c < std::min(x.dim(1), first + size); ++c) {
      Index other = at;
      other[1] = c;
      sum += std::pow(x[Offset(x, other)], 2);
    }
    const double base =
        spec.Float("bias", 1) + spec.Float("alpha", 1e-4) / static_cast<double>(size) * sum;
    outputs[0][i] = x[i] / std::pow(base, spec.Float("beta", 0.75));
  });
}

constexpr FunctionRow kLrnReferences[] = {
    {"LRN", Lrn},
};

constexpr CaseRow kLrnCases[] = {
    {"LRN", "f2x7x3x4 -> f2x7x3x4", "size=5 alpha=0.5 beta=0.75 bias=1.0"},
    {"LRN", "f2x6x5 -> f2x6x5", "size=4 alpha=0.3 beta=0.5 bias=2.0"},
    {"LRN", "f1x3x9x9 -> f1x3x9x9", "size=3"},
};

}  // namespace

std::span<const FunctionRow> LrnReferences() { return kLrnReferences; }
std::span<const CaseRow> LrnCases() { return kLrnCases; }

}  // namespace ckplan::reference
