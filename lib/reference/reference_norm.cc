// Normalisations: batch, layer, instance, group, root mean square, local response; and softmax.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "lib/reference/reference.h"

namespace ckplan::reference {

namespace {

struct Moments {
  double mean = 0, variance = 0;
};

// Of the elements that `group_of` gives the same number.
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

// Scale and bias are of channels; up to opset 20 of groups.
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

// Elements from `axis` on are normalised together.
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
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t row = i / size * size;
    double square = 0;
    for (int64_t k = 0; k < size; ++k)
      square += x[row + k] * x[row + k] / static_cast<double>(size);
    outputs[0][i] = x[i] / std::sqrt(square + Epsilon(spec)) * inputs[1][i % size];
  }
}

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

// Below opset 13 all from `axis` on is one row; since then the axis alone.
void SoftmaxOf(const OpSpec& spec, const Tensor& x, Tensor& y, bool is_log) {
  int64_t axis = spec.Int("axis", spec.opset >= 13 ? -1 : 1);
  if (axis < 0) axis += x.rank();
  const auto group = [&](const Index& at) {
    int64_t number = 0;
    for (int64_t i = 0; i < x.rank(); ++i) {
      const bool is_inside = spec.opset >= 13 ? i == axis : i >= axis;
      if (!is_inside) number = number * x.dim(i) + at[static_cast<size_t>(i)];
    }
    return number;
  };
  std::map<int64_t, double> sums;
  ForEach(x.dims, [&](const Index& at, int64_t i) { sums[group(at)] += std::exp(x[i]); });
  ForEach(x.dims, [&](const Index& at, int64_t i) {
    const double sum = sums[group(at)];
    y[i] = is_log ? x[i] - std::log(sum) : std::exp(x[i]) / sum;
  });
}

void Softmax(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  SoftmaxOf(spec, inputs[0], outputs[0], false);
}
void LogSoftmax(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  SoftmaxOf(spec, inputs[0], outputs[0], true);
}

constexpr FunctionRow kRows[] = {
    {"BatchNormalization", BatchNormalization},
    {"GroupNormalization", GroupNormalization},
    {"InstanceNormalization", InstanceNormalization},
    {"LRN", Lrn},
    {"LayerNormalization", LayerNormalization},
    {"LogSoftmax", LogSoftmax},
    {"MeanVarianceNormalization", MeanVarianceNormalization},
    {"RMSNormalization", RmsNormalization},
    {"Softmax", Softmax},
};

}  // namespace

std::span<const FunctionRow> NormFunctions() { return kRows; }

}  // namespace ckplan::reference
