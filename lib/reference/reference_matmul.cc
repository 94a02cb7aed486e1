// Matrix products.
#include "lib/reference/reference.h"

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

constexpr FunctionRow kRows[] = {
    {"Gemm", Gemm},
    {"MatMul", MatMul},
};

}  // namespace

std::span<const FunctionRow> MatMulFunctions() { return kRows; }

}  // namespace ckplan::reference
