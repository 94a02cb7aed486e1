// Reductions along axes.
#include <algorithm>
#include <cmath>

#include "lib/executor/testing/op_case.h"

namespace ckplan::reference {

namespace {

using Group = const std::vector<double>&;

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

// F computes one result from the reduced elements: double(std::vector<double>).
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

double MeanSquare(Group g) {
  const double mean = Mean(g);
  double sum = 0;
  for (const double x : g) sum += (x - mean) * (x - mean);
  return sum / static_cast<double>(g.size());
}

void Variance(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  Reduce<MeanSquare>(spec, inputs, outputs);
  const auto size = static_cast<double>(inputs[0].size()) / static_cast<double>(outputs[0].size());
  const auto correction = static_cast<double>(spec.Int("correction", 1));
  for (double& variance : outputs[0].values) variance *= size / (size - correction);
}

constexpr FunctionRow kReduceReferences[] = {
    {"ReduceSum", Reduce<Sum>},       {"ReduceMean", Reduce<Mean>},
    {"ReduceMax", Reduce<Max>},       {"ReduceMin", Reduce<Min>},
    {"ReduceProd", Reduce<Prod>},     {"ReduceL1", Reduce<L1>},
    {"ReduceL2", Reduce<L2>},         {"ReduceSumSquare", Reduce<SumSquare>},
    {"ReduceLogSum", Reduce<LogSum>}, {"ReduceLogSumExp", Reduce<LogSumExp>},
    {"ReduceVariance", Variance},
};

constexpr CaseRow kReduceCases[] = {
    {"ReduceSum", "f2x3x4 -> f1x1x1"},
    {"ReduceSum", "f2x3x4 -> fs", "keepdims=0"},
    {"ReduceSum", "f2x3x4 i1=[1] -> f2x1x4"},
    {"ReduceSum", "f2x3x4 i1=[-1] -> f2x3", "keepdims=0"},
    {"ReduceSum", "f2x3x4 i2=[0,2] -> f3", "keepdims=0"},
    {"ReduceSum", "f2x3x4 i2=[0,1] -> f1x1x4"},
    {"ReduceSum", "f2x3x4 i0=[] -> f2x3x4", "noop_with_empty_axes=1"},
    {"ReduceSum", "f2x3x4 i0=[] -> f1x1x1", "noop_with_empty_axes=0"},
    {"ReduceSum", "f2x0x4 i1=[1] -> f2x1x4"},
    {"ReduceSum", "f3x1x5 i1=[1] -> f3x1x5"},
    {"ReduceSum", "f70001 -> f1", "", 1e-4},
    {"ReduceSum", "f3x30011 i1=[0] -> f1x30011"},
    {"ReduceSum", "f40007x2 i1=[0] -> f1x2", "", 1e-4},
    {"ReduceSum", "f7x600x19 i2=[0,2] -> f600", "keepdims=0"},
    {"ReduceSum", "f1100x20 i1=[1] -> f1100x1"},
    {"ReduceSum", "f9x1100x4 i2=[0,2] -> f1100", "keepdims=0"},
    {"ReduceSum", "i2x3(-9..9) i1=[1] -> i2x1"},
    {"ReduceSum", "n2x3(-9..9) i1=[0] -> n3", "keepdims=0"},
    {"ReduceSum", "i0x3 i1=[1] -> i0x1"},
    {"ReduceSum", "i3x0 i1=[1] -> i3x1"},
    {"ReduceSum@11", "f2x3x4 -> f2x1x4", "axes=[1]"},
    {"ReduceMean", "f2x3x4x5 i2=[2,3] -> f2x3x1x1"},
    {"ReduceMean@17", "f2x3x4 -> f2x3x1", "axes=[-1]"},
    {"ReduceMean@13", "f2x3x4 -> f1x1x1"},
    {"ReduceMean", "i2x3(-9..9) i1=[1] -> i2x1"},
    {"ReduceMax", "f2x3x4 i1=[1] -> f2x1x4"},
    {"ReduceMax", "f2x3x4 i1=[2] -> f2x3", "keepdims=0"},
    {"ReduceMax@13", "f2x3x4 -> f1x1x1"},
    {"ReduceMax", "f70001 -> f1"},
    {"ReduceMax", "i2x3(-9..9) i1=[1] -> i2x1"},
    {"ReduceMin", "f2x3x4 i1=[0] -> f1x3x4"},
    {"ReduceMin", "i2x3(-9..9) -> i1x1"},
    {"ReduceProd", "f2x3x4 i1=[1] -> f2x1x4"},
    {"ReduceProd", "f2x3 i1=[1] -> f2x1"},
    {"ReduceProd", "f9000(0.99..1.01) -> f1", "", 1e-4},
    {"ReduceProd", "f3x3@[0,1,2,0,4,0,3,2,1] i1=[1] -> f3x1"},
    {"ReduceProd", "i4(1..5) -> i1"},
    {"ReduceL1", "f2x3x4 i1=[1] -> f2x1x4"},
    {"ReduceL2", "f2x3x4 i1=[2] -> f2x3x1"},
    {"ReduceL2@11", "f2x3x4 -> f2x3", "axes=[-1] keepdims=0"},
    {"ReduceSumSquare", "f2x3x4 i1=[1] -> f2x1x4", "", 1e-4},
    {"ReduceLogSum", "f2x3x4(0.2..2) i1=[1] -> f2x1x4"},
    {"ReduceVariance", "f2x3x4 i1=[1] -> f2x1x4"},
    {"ReduceVariance", "f7x600x19 i2=[0,2] -> f600", "keepdims=0 correction=0", 1e-4},
    {"ReduceVariance", "f5x1100 i1=[-1] -> f5x1", "", 1e-4},
    {"ReduceLogSumExp", "f2x3x4 i1=[1] -> f2x1x4"},
    {"ReduceLogSumExp", "f2x3x4(200..300) i1=[2] -> f2x3x1"},
    {"ReduceLogSumExp", "f2x3x4 -> fs", "keepdims=0"},
    {"ReduceLogSumExp", "f70001 -> f1", "", 1e-4},
};

}  // namespace

std::span<const FunctionRow> ReduceReferences() { return kReduceReferences; }
std::span<const CaseRow> ReduceCases() { return kReduceCases; }

// Cumulative sums, and the indices of extreme values.

namespace {

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
  Tensor x = inputs[0];
  int64_t axis = spec.Int("axis", spec.opset < 13 ? 1 : -1);
  if (axis < 0) axis += x.rank();
  if (spec.opset < 13) {  // All elements from the axis on are one line.
    int64_t rows = 1;
    for (int64_t k = 0; k < axis; ++k) rows *= x.dim(k);
    x.dims = {rows, x.size() / rows};
    axis = 1;
  }
  std::vector<int64_t> lines = x.dims;
  lines[static_cast<size_t>(axis)] = 1;
  ForEach(lines, [&](const Index& index, int64_t) {
    Index at = index;
    int64_t first_maximum = Offset(x, at);
    for (int64_t k = 0; k < x.dim(axis); ++k) {
      at[static_cast<size_t>(axis)] = k;
      const int64_t offset = Offset(x, at);
      if (x[offset] > x[first_maximum]) first_maximum = offset;
      outputs[0][offset] = 0;
    }
    outputs[0][first_maximum] = 1;
  });
}

constexpr FunctionRow kScanReferences[] = {
    {"Hardmax", Hardmax},
    {"CumSum", CumSum},
    {"ArgMax", ArgExtreme},
    {"ArgMin", ArgExtreme},
};

constexpr CaseRow kScanCases[] = {
    {"CumSum", "f2x5x3 is=[1] -> f2x5x3"},
    {"CumSum", "f2x5x3 is=[-1] -> f2x5x3", "exclusive=1"},
    {"CumSum", "f2x5x3 is=[0] -> f2x5x3", "reverse=1"},
    {"CumSum", "f2x5x3 is=[1] -> f2x5x3", "reverse=1 exclusive=1"},
    {"CumSum", "f3x150 is=[1] -> f3x150", "", 3e-5},
    {"CumSum", "f2x131x3 is=[1] -> f2x131x3", "reverse=1 exclusive=1", 3e-5},
    {"CumSum", "i2x5(-9..9) is=[1] -> i2x5"},
    {"CumSum", "i2x80(-9..9) is=[1] -> i2x80"},
    {"CumSum", "n2x5(-9..9) i1=[1] -> n2x5"},
    {"Hardmax", "f2x5x3 -> f2x5x3"},
    {"Hardmax", "f2x5x3 -> f2x5x3", "axis=1"},
    {"Hardmax@11", "f2x5x3 -> f2x5x3"},
    {"Hardmax", "f5@[1,3,2,3,0] -> f5"},
    {"ArgMax", "f2x5x3 -> i1x5x3"},
    {"ArgMax", "f2x5x3 -> i2x3", "axis=1 keepdims=0"},
    {"ArgMax", "i6@[1,3,2,3,0,3] -> i1", "axis=0"},
    {"ArgMax", "i6@[1,3,2,3,0,3] -> i1", "axis=0 select_last_index=1"},
    {"ArgMin", "f2x5x3 -> i2x5x1", "axis=-1"},
    {"ArgMin", "n3x2 -> i3", "axis=1 keepdims=0 select_last_index=1"},
};

}  // namespace

std::span<const FunctionRow> ScanReferences() { return kScanReferences; }
std::span<const CaseRow> ScanCases() { return kScanCases; }

// TopK.

namespace {

// Returns values and indices of the k largest or smallest elements, in order. Among equal elements
// the first ones win.
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

constexpr FunctionRow kTopKReferences[] = {
    {"TopK", TopK},
};

constexpr CaseRow kTopKCases[] = {
    {"TopK", "f2x7 i1=[3] -> f2x3 i2x3"},
    {"TopK", "f2x7 i1=[3] -> f2x3 _"},
    {"TopK", "f2x7x3 i1=[7] -> f2x7x3 i2x7x3", "axis=1 largest=0"},
    {"TopK", "f2x7x3 i1=[2] -> f2x2x3 _", "axis=-2"},
    {"TopK", "f9~@[3,1,3,3,2,1,0,3,1] i1=[5] -> f5 i5"},
    {"TopK", "f300x90 i1=[40] -> f300x40 i300x40"},
    {"TopK", "f2x1100 i1=[3] -> f2x3 i2x3"},
    {"TopK", "f2x1100x2 i1=[2] -> f2x2x2 _", "axis=1 largest=0"},
    {"TopK", "i2x1100(0..9) i1=[9] -> i2x9 i2x9"},
    {"TopK", "i2x7(-9..9) i1=[3] -> i2x3 i2x3", "sorted=0"},
};

}  // namespace

std::span<const FunctionRow> TopKReferences() { return kTopKReferences; }
std::span<const CaseRow> TopKCases() { return kTopKCases; }

}  // namespace ckplan::reference
