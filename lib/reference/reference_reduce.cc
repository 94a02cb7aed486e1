// Reductions, running sums, and the places of extremes.
#include <algorithm>
#include <cmath>

#include "lib/reference/reference.h"

namespace ckplan::reference {

namespace {

std::vector<bool> ReducedAxes(const OpSpec& spec, std::span<const Tensor> inputs) {
  const int64_t rank = inputs[0].rank();
  std::vector<int64_t> axes = spec.Ints("axes");
  if (inputs.size() > 1 && inputs[1].is_present) {
    axes.clear();
    for (const double axis : inputs[1].values) axes.push_back(static_cast<int64_t>(axis));
  }
  const bool all = axes.empty() && spec.Int("noop_with_empty_axes", 0) == 0;
  std::vector<bool> is_reduced(static_cast<size_t>(rank), all);
  for (const int64_t axis : axes) {
    is_reduced[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = true;
  }
  return is_reduced;
}

// F: double(std::vector<double> of the elements that go into one result).
template <auto F>
void Reduce(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const std::vector<bool> is_reduced = ReducedAxes(spec, inputs);
  const Tensor& x = inputs[0];
  std::vector<std::vector<double>> groups(outputs[0].values.size());
  ForEach(x.dims, [&](const Index& index, int64_t i) {
    int64_t result = 0;
    for (size_t axis = 0; axis < index.size(); ++axis) {
      if (!is_reduced[axis]) result = result * x.dims[axis] + index[axis];
    }
    groups[static_cast<size_t>(result)].push_back(x[i]);
  });
  for (int64_t i = 0; i < outputs[0].size(); ++i) {
    outputs[0][i] = F(groups[static_cast<size_t>(i)]);
    if (x.type != ElementType::kFloat32) outputs[0][i] = std::trunc(outputs[0][i]);
  }
}

using Group = const std::vector<double>&;

double Sum(Group g) {
  double sum = 0;
  for (const double x : g) sum += x;
  return sum;
}
double Mean(Group g) { return Sum(g) / static_cast<double>(g.size()); }
double Max(Group g) { return *std::max_element(g.begin(), g.end()); }
double Min(Group g) { return *std::min_element(g.begin(), g.end()); }
double Prod(Group g) {
  double product = 1;
  for (const double x : g) product *= x;
  return product;
}
double L1(Group g) {
  double sum = 0;
  for (const double x : g) sum += std::abs(x);
  return sum;
}
double SumSquare(Group g) {
  double sum = 0;
  for (const double x : g) sum += x * x;
  return sum;
}
double L2(Group g) { return std::sqrt(SumSquare(g)); }
double LogSum(Group g) { return std::log(Sum(g)); }
double LogSumExp(Group g) {
  const double max = Max(g);
  double sum = 0;
  for (const double x : g) sum += std::exp(x - max);
  return std::log(sum) + max;
}

void CumSum(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  auto axis = static_cast<int64_t>(inputs[1][0]);
  if (axis < 0) axis += x.rank();
  const bool is_exclusive = spec.Int("exclusive", 0) != 0;
  const bool is_reverse = spec.Int("reverse", 0) != 0;
  ForEach(x.dims, [&](const Index& index, int64_t i) {
    Index other = index;
    for (int64_t k = 0; k < x.dim(axis); ++k) {
      const int64_t own = index[static_cast<size_t>(axis)];
      const bool is_before = is_reverse ? k > own : k < own;
      if (!is_before && (is_exclusive || k != own)) continue;
      other[static_cast<size_t>(axis)] = k;
      outputs[0][i] += x[Offset(x, other)];
    }
  });
}

void ArgExtreme(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  int64_t axis = spec.Int("axis", 0);
  if (axis < 0) axis += x.rank();
  const double sign = spec.type == "ArgMax" ? 1 : -1;
  std::vector<int64_t> others = x.dims;
  others[static_cast<size_t>(axis)] = 1;
  ForEach(others, [&](const Index& index, int64_t i) {
    Index at = index;
    double best = -HUGE_VAL;
    for (int64_t k = 0; k < x.dim(axis); ++k) {
      at[static_cast<size_t>(axis)] = k;
      const double value = sign * x[Offset(x, at)];
      if (value > best || (value == best && spec.Int("select_last_index", 0) != 0)) {
        best = value;
        outputs[0][i] = static_cast<double>(k);
      }
    }
  });
}

void Hardmax(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  int64_t axis = spec.Int("axis", spec.opset < 13 ? 1 : -1);
  if (axis < 0) axis += x.rank();
  // The elements that one is chosen of have the same index before the axis, and, since opset 13,
  // after it.
  const auto is_rival = [&](const Index& a, const Index& b) {
    for (size_t k = 0; k < a.size(); ++k) {
      const auto at = static_cast<int64_t>(k);
      if (a[k] != b[k] && (at < axis || (at > axis && spec.opset >= 13))) return false;
    }
    return true;
  };
  ForEach(x.dims, [&](const Index& index, int64_t i) {
    bool is_first_maximum = true;
    ForEach(x.dims, [&](const Index& other, int64_t k) {
      if (!is_rival(index, other)) return;
      if (x[k] > x[i] || (x[k] == x[i] && k < i)) is_first_maximum = false;
    });
    outputs[0][i] = is_first_maximum ? 1 : 0;
  });
}

// Values and indices of the k largest, or smallest, in order; of equals the first ones.
void TopK(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  int64_t axis = spec.Int("axis", -1);
  if (axis < 0) axis += x.rank();
  const double sign = spec.Int("largest", 1) != 0 ? -1 : 1;
  std::vector<int64_t> others = x.dims;
  others[static_cast<size_t>(axis)] = 1;
  ForEach(others, [&](const Index& index, int64_t) {
    Index at = index;
    std::vector<std::pair<double, int64_t>> line;
    for (int64_t k = 0; k < x.dim(axis); ++k) {
      at[static_cast<size_t>(axis)] = k;
      line.emplace_back(sign * x[Offset(x, at)], k);
    }
    std::sort(line.begin(), line.end());
    for (int64_t k = 0; k < outputs[0].dim(axis); ++k) {
      const auto& [value, from] = line[static_cast<size_t>(k)];
      at[static_cast<size_t>(axis)] = k;
      outputs[0][Offset(outputs[0], at)] = sign * value;
      if (outputs[1].is_present) {
        outputs[1][Offset(outputs[1], at)] = static_cast<double>(from);
      }
    }
  });
}

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
  ForEach(x.dims, [&](const Index& index, int64_t i) {
    Index at = index;
    std::vector<double> line;
    for (int64_t k = 0; k < x.dim(axis); ++k) {
      at[static_cast<size_t>(axis)] = k;
      line.push_back(x[Offset(x, at)]);
    }
    const double norm = LpNorm(line, static_cast<double>(spec.Int("p", 2)));
    outputs[0][i] = norm == 0 ? 0 : x[i] / norm;
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

void ReverseSequence(const OpSpec& spec, std::span<const Tensor> inputs,
                     std::span<Tensor> outputs) {
  const auto batch = static_cast<size_t>(spec.Int("batch_axis", 1));
  const auto time = static_cast<size_t>(spec.Int("time_axis", 0));
  ForEach(outputs[0].dims, [&](const Index& index, int64_t i) {
    const auto length = static_cast<int64_t>(inputs[1][index[batch]]);
    Index from = index;
    if (index[time] < length) from[time] = length - 1 - index[time];
    outputs[0][i] = inputs[0][Offset(inputs[0], from)];
  });
}

constexpr FunctionRow kRows[] = {
    {"Hardmax", Hardmax},
    {"TopK", TopK},
    {"LpNormalization", LpNormalization},
    {"GlobalLpPool", GlobalLpPool},
    {"ReverseSequence", ReverseSequence},
    {"ReduceSum", Reduce<Sum>},
    {"ReduceMean", Reduce<Mean>},
    {"ReduceMax", Reduce<Max>},
    {"ReduceMin", Reduce<Min>},
    {"ReduceProd", Reduce<Prod>},
    {"ReduceL1", Reduce<L1>},
    {"ReduceL2", Reduce<L2>},
    {"ReduceSumSquare", Reduce<SumSquare>},
    {"ReduceLogSum", Reduce<LogSum>},
    {"ReduceLogSumExp", Reduce<LogSumExp>},
    {"CumSum", CumSum},
    {"ArgMax", ArgExtreme},
    {"ArgMin", ArgExtreme},
};

}  // namespace

std::span<const FunctionRow> ReduceFunctions() { return kRows; }

}  // namespace ckplan::reference
