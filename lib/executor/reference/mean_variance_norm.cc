// MeanVarianceNormalization.
#include <cmath>

#include "lib/executor/reference/families.h"
#include "lib/executor/reference/moments.h"

namespace ckplan::reference {

namespace {

void MeanVarianceNormalization(const OpSpec& spec, std::span<const Tensor> inputs,
                               std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  const std::vector<int64_t> axes =
      spec.Has("axes") ? spec.Ints("axes") : std::vector<int64_t>{0, 2, 3};
  const auto group = [&](const Index& at) {
    Index kept = at;
    for (const int64_t axis : axes)
      kept[static_cast<size_t>(axis < 0 ? axis + x.rank() : axis)] = 0;
    return Offset(x, kept);
  };
  const auto moments = MomentsBy(x, group);
  ForEach(x.dims, [&](const Index& at, int64_t i) {
    const Moments& of = moments.at(group(at));
    outputs[0][i] = (x[i] - of.mean) / (std::sqrt(of.variance) + 1e-9);
  });
}

constexpr FunctionRow kMeanVarianceNormReferences[] = {
    {"MeanVarianceNormalization", MeanVarianceNormalization},
};

constexpr CaseRow kMeanVarianceNormCases[] = {
    {"MeanVarianceNormalization", "f3x4x2x5 -> f3x4x2x5"},
    {"MeanVarianceNormalization", "f3x4x2x5 -> f3x4x2x5", "axes=[2,3]"},
    {"MeanVarianceNormalization", "f8x2x80x100 -> f8x2x80x100"},
    {"MeanVarianceNormalization", "f3x4x5 -> f3x4x5", "axes=[0]"},
    {"MeanVarianceNormalization", "f3x4 -> f3x4", "axes=[0,-1]"},
};

}  // namespace

std::span<const FunctionRow> MeanVarianceNormReferences() { return kMeanVarianceNormReferences; }
std::span<const CaseRow> MeanVarianceNormCases() { return kMeanVarianceNormCases; }

}  // namespace ckplan::reference
