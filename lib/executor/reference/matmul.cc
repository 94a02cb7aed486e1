// Matrix products.
#include "lib/executor/reference/families.h"

namespace ckplan::reference {

namespace {

void MatMul(const OpSpec&, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  Tensor a = inputs[0];
  Tensor b = inputs[1];
  Tensor& y = outputs[0];
  const bool is_row = a.rank() == 1;
  const bool is_column = b.rank() == 1;
  std::vector<int64_t> dims = y.dims;
  if (is_row) a.dims.insert(a.dims.begin(), 1);
  if (is_column) b.dims.push_back(1);
  if (is_column) dims.push_back(1);
  if (is_row) dims.insert(dims.end() - 1, 1);
  const int64_t count = a.dims.back();
  ForEach(dims, [&](const Index& index, int64_t o) {
    Index of_a = index;
    Index of_b = index;
    for (int64_t k = 0; k < count; ++k) {
      of_a[index.size() - 1] = k;
      of_b[index.size() - 2] = k;
      y[o] += a[Offset(a, of_a)] * b[Offset(b, of_b)];
    }
  });
}

void Gemm(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Tensor& a = inputs[0];
  const Tensor& b = inputs[1];
  const bool flips_a = spec.Int("transA", 0) != 0;
  const bool flips_b = spec.Int("transB", 0) != 0;
  ForEach(outputs[0].dims, [&](const Index& index, int64_t o) {
    double sum = 0;
    for (int64_t k = 0; k < a.dim(flips_a ? 0 : 1); ++k) {
      const Index of_a = flips_a ? Index{k, index[0]} : Index{index[0], k};
      const Index of_b = flips_b ? Index{index[1], k} : Index{k, index[1]};
      sum += a[Offset(a, of_a)] * b[Offset(b, of_b)];
    }
    outputs[0][o] = spec.Float("alpha", 1) * sum;
    if (inputs.size() < 3 || !inputs[2].is_present) return;
    outputs[0][o] += spec.Float("beta", 1) * inputs[2][Offset(inputs[2], index)];
  });
}

constexpr FunctionRow kMatMulReferences[] = {
    {"Gemm", Gemm},
    {"MatMul", MatMul},
};

constexpr CaseRow kMatMulCases[] = {
    {"Gemm", "f3x4 f4x5 -> f3x5"},
    {"Gemm", "f3x4 f4x5 f5 -> f3x5", "alpha=0.5 beta=-2.0"},
    {"Gemm", "f4x3 f4x5 f3x5 -> f3x5", "transA=1"},
    {"Gemm", "f3x4 f5x4 f1x5 -> f3x5", "transB=1 alpha=1.5"},
    {"Gemm", "f4x3 f5x4 f3x1 -> f3x5", "transA=1 transB=1 alpha=-1.0"},
    {"Gemm", "f3x4 f4x5 fs -> f3x5", "beta=0.25"},
    {"Gemm", "f3x4 f4x5 f1 -> f3x5"},
    {"Gemm", "f3x4 f4x1 f3x1 -> f3x1"},
    {"Gemm", "f1x4 f4x5 f1x5 -> f1x5"},
    {"Gemm", "f8x32 f40x32! f40! -> f8x40", "transB=1"},
    {"Gemm", "f1x1 f1x1 f1x1 -> f1x1"},
    {"MatMul", "f3x4 f4x5 -> f3x5"},
    {"MatMul", "f4 f4x5 -> f5"},
    {"MatMul", "f3x4 f4 -> f3"},
    {"MatMul", "f4 f4 -> fs"},
    {"MatMul", "f2x3x4 f4x5 -> f2x3x5"},
    {"MatMul", "f2x3x4 f4x5! -> f2x3x5"},
    {"MatMul", "f2x3x4 f2x4x5 -> f2x3x5"},
    {"MatMul", "f3x4 f2x4x5 -> f2x3x5"},
    {"MatMul", "f2x1x3x4 f5x4x2 -> f2x5x3x2"},
    {"MatMul", "f2x5x3x4 f2x1x4x2 -> f2x5x3x2"},
    {"MatMul", "f1x5x3x4 f2x5x4x2 -> f2x5x3x2"},
    {"MatMul", "f2x5x3x4 f1x1x4x2 -> f2x5x3x2"},
    {"MatMul", "f2x3x4 f4 -> f2x3"},
    {"MatMul", "f4 f2x4x5 -> f2x5"},
    {"MatMul", "f40x3 f3x1024! -> f40x1024", "",
     1e-4},  // The stride of 1024 causes cache conflicts.
    {"Gemm", "f40x3~ f3x2048! f2048! -> f40x2048", "alpha=0.5", 1e-4},
    {"MatMul", "f2x2x20x24 f2x2x24x20 -> f2x2x20x20"},
    {"MatMul",
     "f2x3x4x5 f2x1x5x6 -> f2x3x4x6"},  // Joined into one matrix with three times the rows.
    {"MatMul", "f2x3x4x5 f3x5x6 -> f2x3x4x6"},
    {"MatMul", "f4x5 f2x3x5x6 -> f2x3x4x6"},
};

}  // namespace

std::span<const FunctionRow> MatMulReferences() { return kMatMulReferences; }
std::span<const CaseRow> MatMulCases() { return kMatMulCases; }

}  // namespace ckplan::reference
