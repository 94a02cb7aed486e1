// BatchNormalization.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "lib/executor/testing/op_case.h"
#include "lib/executor/testing/tensor.h"

namespace ckplan::reference {

namespace {

// Code that several normalisations share.
struct Moments {
  double mean = 0, variance = 0;
};

// Returns the moments of each group. Elements with the same `group_of` form a group.
std::map<int64_t, Moments> MomentsBy(const Tensor& x,
                                     const std::function<int64_t(const Index&)>& group_of) {
  std::map<int64_t, std::vector<double>> groups;
  ForEach(x.dims, [&](const Index& index, int64_t i) { groups[group_of(index)].push_back(x[i]); });
  std::map<int64_t, Moments> moments;
  for (const auto& [group, values] : groups) {
    Moments& of = moments[group];
    const auto count = static_cast<double>(values.size());
    for (const double value : values) of.mean += value / count;
    for (const double value : values) of.variance += (value - of.mean) * (value - of.mean) / count;
  }
  return moments;
}

double Epsilon(const OpSpec& spec) {
  return static_cast<double>(static_cast<float>(spec.Float("epsilon", 1e-5)));
}

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

// GroupNormalization and InstanceNormalization.

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

// Scale and bias have one number per channel; up to opset 20, one per group.
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

// LayerNormalization and RMSNormalization.

namespace {

// Returns the row size; elements from `axis` on are normalised together.
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

// MeanVarianceNormalization.

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

// Norms along an axis and over images.

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

// Local response normalization.

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
