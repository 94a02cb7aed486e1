// Norms along an axis and over images.
#include <cmath>

#include "lib/executor/reference/families.h"

namespace ckplan::reference {

namespace {

using Group = const std::vector<double>&;

double LpNorm(Group g, double p) {
  double sum = 0;
  for (const double x : g) sum += std::pow(std::abs(x), p);
  return std::pow(sum, 1 / p);
}

void LpNormalization(const OpSpec& spec, std::span<const Tensor> inputs,
                     std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  int64_t axis = spec.Int("axis", -1);
  if (axis < 0) axis += x.rank();
  std::vector<int64_t> lines = x.dims;
  lines[static_cast<size_t>(axis)] = 1;
  ForEach(lines, [&](const Index& index, int64_t) {
    Index at = index;
    std::vector<double> line;
    for (int64_t k = 0; k < x.dim(axis); ++k) {
      at[static_cast<size_t>(axis)] = k;
      line.push_back(x[Offset(x, at)]);
    }
    const double norm = LpNorm(line, static_cast<double>(spec.Int("p", 2)));
    for (int64_t k = 0; k < x.dim(axis); ++k) {
      at[static_cast<size_t>(axis)] = k;
      outputs[0][Offset(x, at)] = norm == 0 ? 0 : line[static_cast<size_t>(k)] / norm;
    }
  });
}

void GlobalLpPool(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const int64_t pixels = inputs[0].size() / outputs[0].size();
  for (int64_t i = 0; i < outputs[0].size(); ++i) {
    const auto first = inputs[0].values.begin() + i * pixels;
    outputs[0][i] =
        LpNorm(std::vector<double>(first, first + pixels), static_cast<double>(spec.Int("p", 2)));
  }
}

constexpr FunctionRow kLpNormReferences[] = {
    {"LpNormalization", LpNormalization},
    {"GlobalLpPool", GlobalLpPool},
};

constexpr CaseRow kLpNormCases[] = {
    {"LpNormalization", "f2x5x3 -> f2x5x3"},
    {"LpNormalization", "f2x5x3 -> f2x5x3", "axis=1 p=1"},
    {"LpNormalization", "f40x700 -> f40x700", "p=2"},
    {"LpNormalization", "f2x3*@[0,0,0,1,2,2] -> f2x3"},
    {"GlobalLpPool", "f2x3x4x5 -> f2x3x1x1"},
    {"GlobalLpPool", "f2x3x4x5 -> f2x3x1x1", "p=1"},
    {"GlobalLpPool", "f2x3x4 -> f2x3x1", "p=3", 1e-4},
    {"GlobalLpPool", "f3x7x50x60 -> f3x7x1x1", "", 1e-4},
};

}  // namespace

std::span<const FunctionRow> LpNormReferences() { return kLpNormReferences; }
std::span<const CaseRow> LpNormCases() { return kLpNormCases; }

}  // namespace ckplan::reference
