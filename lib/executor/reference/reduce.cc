// Reductions along axes.
#include <algorithm>
#include <cmath>

#include "lib/executor/reference/families.h"

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

// F computes one result: double(std::vector<double> of the elements that are reduced to it).
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

constexpr FunctionRow kReduceReferences[] = {
    {"ReduceSum", Reduce<Sum>},       {"ReduceMean", Reduce<Mean>},
    {"ReduceMax", Reduce<Max>},       {"ReduceMin", Reduce<Min>},
    {"ReduceProd", Reduce<Prod>},     {"ReduceL1", Reduce<L1>},
    {"ReduceL2", Reduce<L2>},         {"ReduceSumSquare", Reduce<SumSquare>},
    {"ReduceLogSum", Reduce<LogSum>}, {"ReduceLogSumExp", Reduce<LogSumExp>},
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
    {"ReduceLogSumExp", "f2x3x4 i1=[1] -> f2x1x4"},
    {"ReduceLogSumExp", "f2x3x4(200..300) i1=[2] -> f2x3x1"},
    {"ReduceLogSumExp", "f2x3x4 -> fs", "keepdims=0"},
    {"ReduceLogSumExp", "f70001 -> f1", "", 1e-4},
};

}  // namespace

std::span<const FunctionRow> ReduceReferences() { return kReduceReferences; }
std::span<const CaseRow> ReduceCases() { return kReduceCases; }

}  // namespace ckplan::reference
