// GroupNormalization and InstanceNormalization.
#include <cmath>

#include "lib/executor/reference/families.h"
#include "lib/executor/reference/moments.h"

namespace ckplan::reference {

namespace {

void InstanceNormalization(const OpSpec& spec, std::span<const Tensor> inputs,
                           std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  const auto group = [&x](const Index& at) { return at[0] * x.dim(1) + at[1]; };
  const auto moments = MomentsBy(x, group);
  ForEach(x.dims, [&](const Index& at, int64_t i) {
    const Moments& of = moments.at(group(at));
    outputs[0][i] = (x[i] - of.mean) / std::sqrt(of.variance + Epsilon(spec)) * inputs[1][at[1]] +
                    inputs[2][at[1]];
  });
}

// Scale and bias have one number per channel; up to opset 20 they have one per group.
void GroupNormalization(const OpSpec& spec, std::span<const Tensor> inputs,
                        std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  const int64_t groups = spec.Int("num_groups", 1);
  const int64_t size = x.dim(1) / groups;
  const auto group = [&](const Index& at) { return at[0] * groups + at[1] / size; };
  const auto moments = MomentsBy(x, group);
  ForEach(x.dims, [&](const Index& at, int64_t i) {
    const Moments& of = moments.at(group(at));
    const int64_t p = spec.opset >= 21 ? at[1] : at[1] / size;
    outputs[0][i] =
        (x[i] - of.mean) / std::sqrt(of.variance + Epsilon(spec)) * inputs[1][p] + inputs[2][p];
  });
}

constexpr FunctionRow kGroupNormReferences[] = {
    {"GroupNormalization", GroupNormalization},
    {"InstanceNormalization", InstanceNormalization},
};

constexpr CaseRow kGroupNormCases[] = {
    {"InstanceNormalization", "f2x3x4x5 f3! f3! -> f2x3x4x5"},
    {"InstanceNormalization", "f2x3x7 f3! f3! -> f2x3x7", "epsilon=0.01"},
    {"InstanceNormalization", "f1x2x60x60 f2! f2! -> f1x2x60x60"},
    {"InstanceNormalization", "f8x2x40x60 f2! f2! -> f8x2x40x60"},
    {"InstanceNormalization", "f2x3x150x220 f3! f3! -> f2x3x150x220"},
    {"InstanceNormalization", "f1x2x151x221 f2! f2! -> f1x2x151x221"},
    {"InstanceNormalization", "f1x2x151x221* f2* f2* -> f1x2x151x221"},
    {"GroupNormalization@21", "f1x4x100x170 f4! f4! -> f1x4x100x170", "num_groups=2"},
    {"GroupNormalization@18", "f2x6x4x5 f3! f3! -> f2x6x4x5", "num_groups=3"},
    {"GroupNormalization@21", "f2x6x4x5 f6! f6! -> f2x6x4x5", "num_groups=3"},
    {"GroupNormalization@21", "f2x4x3 f4! f4! -> f2x4x3", "num_groups=1 epsilon=0.1"},
};

}  // namespace

std::span<const FunctionRow> GroupNormReferences() { return kGroupNormReferences; }
std::span<const CaseRow> GroupNormCases() { return kGroupNormCases; }

}  // namespace ckplan::reference
