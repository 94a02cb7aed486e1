// LayerNormalization and RMSNormalization.
#include <cmath>

#include "lib/executor/reference/families.h"
#include "lib/executor/reference/moments.h"

namespace ckplan::reference {

namespace {

// Returns the size of a row; the elements from `axis` on are normalised together.
int64_t RowSize(const OpSpec& spec, const Tensor& x) {
  int64_t axis = spec.Int("axis", -1);
  if (axis < 0) axis += x.rank();
  int64_t size = 1;
  for (int64_t i = axis; i < x.rank(); ++i) size *= x.dim(i);
  return size;
}

void LayerNormalization(const OpSpec& spec, std::span<const Tensor> inputs,
                        std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  const int64_t size = RowSize(spec, x);
  for (int64_t row = 0; row < x.size() / size; ++row) {
    double mean = 0;
    double variance = 0;
    const auto count = static_cast<double>(size);
    for (int64_t i = 0; i < size; ++i) mean += x[row * size + i] / count;
    for (int64_t i = 0; i < size; ++i) variance += std::pow(x[row * size + i] - mean, 2) / count;
    const double inverse = 1 / std::sqrt(variance + Epsilon(spec));
    for (int64_t i = 0; i < size; ++i) {
      const double bias = inputs.size() > 2 && inputs[2].is_present ? inputs[2][i] : 0;
      outputs[0][row * size + i] = (x[row * size + i] - mean) * inverse * inputs[1][i] + bias;
    }
    if (outputs.size() > 1 && outputs[1].is_present) outputs[1][row] = mean;
    if (outputs.size() > 2 && outputs[2].is_present) outputs[2][row] = inverse;
  }
}

void RmsNormalization(const OpSpec& spec, std::span<const Tensor> inputs,
                      std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  const int64_t size = RowSize(spec, x);
  for (int64_t row = 0; row < x.size(); row += size) {
    double square = 0;
    for (int64_t k = 0; k < size; ++k) {
      square += x[row + k] * x[row + k] / static_cast<double>(size);
    }
    for (int64_t k = 0; k < size; ++k) {
      outputs[0][row + k] = x[row + k] / std::sqrt(square + Epsilon(spec)) * inputs[1][k];
    }
  }
}

constexpr FunctionRow kLayerNormReferences[] = {
    {"LayerNormalization", LayerNormalization},
    {"RMSNormalization", RmsNormalization},
};

constexpr CaseRow kLayerNormCases[] = {
    {"LayerNormalization", "f2x3x8 f8! f8! -> f2x3x8"},
    {"LayerNormalization", "f2x3x8 f8! -> f2x3x8", "epsilon=0.01"},
    {"LayerNormalization", "f2x3x4 f3x4! f3x4! -> f2x3x4", "axis=1"},
    {"LayerNormalization", "f2x3x4~ f4! f4! -> f2x3x4", "axis=2"},
    {"LayerNormalization", "f100x70 f70! f70! -> f100x70"},
    {"LayerNormalization", "f700x8 f8! f8! -> f700x8"},
    {"LayerNormalization", "f2x17000 f17000! f17000! -> f2x17000"},
    {"LayerNormalization", "f2x3x8* f8* f8* -> f2x3x8 f2x3x1 f2x3x1"},
    {"LayerNormalization", "f5x260 f260! f260! -> f5x260"},
    {"LayerNormalization", "f9x768(9..11) f768! f768! -> f9x768", "", 5e-5},
    {"LayerNormalization", "f2x1024 f1024! -> f2x1024"},
    {"LayerNormalization", "f2x1028 f1028! f1028! -> f2x1028"},
    {"LayerNormalization", "f2x2x33(99..101) f33! f33! -> f2x2x33", "", 5e-5},
    {"RMSNormalization@23", "f2x3x8 f8! -> f2x3x8"},
    {"RMSNormalization@23", "f2x3x4 f3x4! -> f2x3x4", "axis=1 epsilon=0.1"},
    {"RMSNormalization@23", "f50x70 f70! -> f50x70"},
    {"RMSNormalization@23", "f3x600 f600! -> f3x600"},
};

}  // namespace

std::span<const FunctionRow> LayerNormReferences() { return kLayerNormReferences; }
std::span<const CaseRow> LayerNormCases() { return kLayerNormCases; }

}  // namespace ckplan::reference
