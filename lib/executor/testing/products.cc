// Matrix products.
#include <algorithm>
#include <cctype>
#include <map>
#include <string>

#include "lib/executor/testing/op_case.h"

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
     "f2x3x4x5 f2x1x5x6 -> f2x3x4x6"},  // Joined into one matrix with three times as many rows.
    {"MatMul", "f2x3x4x5 f3x5x6 -> f2x3x4x6"},
    {"MatMul", "f4x5 f2x3x5x6 -> f2x3x4x6"},
};

}  // namespace

std::span<const FunctionRow> MatMulReferences() { return kMatMulReferences; }
std::span<const CaseRow> MatMulCases() { return kMatMulCases; }

// Einsum.

namespace {

// Returns the label of each axis of a term. A letter is its own label. The axes of an ellipsis,
// those without letters, are numbered from the last one.
std::vector<int> LabelsOf(const std::string& term, size_t rank) {
  std::vector<int> labels;
  const auto dots = static_cast<size_t>(std::count(term.begin(), term.end(), '.'));
  for (size_t i = 0; i < term.size(); ++i) {
    if (term[i] != '.') {
      labels.push_back(term[i]);
      continue;
    }
    for (size_t k = rank + dots - term.size(); k > 0; --k) labels.push_back(static_cast<int>(k));
    i += 2;
  }
  return labels;
}

// Visits all combinations of label values and adds each product to its element of the result.
void Einsum(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  std::vector<std::string> terms(1);
  for (const char c : spec.String("equation", "")) {
    if (c == ',' || c == '>') terms.emplace_back();
    if (std::isalpha(c) != 0 || c == '.') terms.back() += c;
  }
  std::vector<std::vector<int>> labels;
  std::map<int, int64_t> sizes;
  std::map<int, int> uses;
  for (size_t i = 0; i < inputs.size(); ++i) {
    labels.push_back(LabelsOf(terms[i], inputs[i].dims.size()));
    for (size_t axis = 0; axis < labels[i].size(); ++axis) {
      int64_t& size = sizes[labels[i][axis]];
      size = std::max(size, inputs[i].dims[axis]);
      ++uses[labels[i][axis]];
    }
  }
  std::vector<int> result;
  if (terms.size() > inputs.size()) {
    result = LabelsOf(terms.back(), outputs[0].dims.size());
  } else {
    for (const auto& [label, count] : uses) {
      if (count == 1) result.push_back(label);
    }
  }
  std::vector<int64_t> dims;
  std::map<int, size_t> place;
  for (const auto& [label, size] : sizes) {
    place[label] = dims.size();
    dims.push_back(size);
  }
  const auto pick = [&](const std::vector<int>& of, const Index& index) {
    Index picked;
    for (const int label : of) picked.push_back(index[place.at(label)]);
    return picked;
  };
  ForEach(dims, [&](const Index& index, int64_t) {
    double product = 1;
    for (size_t i = 0; i < inputs.size(); ++i) {
      product *= inputs[i][Offset(inputs[i], pick(labels[i], index))];
    }
    outputs[0][Offset(outputs[0], pick(result, index))] += product;
  });
}

constexpr FunctionRow kEinsumReferences[] = {
    {"Einsum", Einsum},
};

constexpr CaseRow kEinsumCases[] = {
    {"Einsum", "f3x4 f4x5 -> f3x5", "equation='ij,jk->ik'"},
    {"Einsum", "f3x4 f4x5 -> f3x5", "equation='ij,jk'"},
    {"Einsum", "f2x3x4 f2x5x4 -> f2x3x5", "equation='bid,bjd->bij'"},
    {"Einsum", "f2x3x4x5 f2x6x4x5 -> f2x4x3x6", "equation='bqhd,bkhd->bhqk'"},
    {"Einsum", "f2x4x3x6 f2x6x4x5 -> f2x3x4x5", "equation='bhqk,bkhd->bqhd'"},
    {"Einsum", "f3x4 f3x4 -> fs", "equation='ij,ij->'"},
    {"Einsum", "f3 f4 -> f3x4", "equation='i,j->ij'"},
    {"Einsum", "f3x4 f3x4 -> f4x3", "equation='ij,ij->ji'"},
    {"Einsum", "f3x4 -> f4x3", "equation='ij->ji'"},
    {"Einsum", "f3x4 -> f3", "equation='ij->i'"},
    {"Einsum", "f3x3 -> f3", "equation='ii->i'"},
    {"Einsum", "f3x3 -> fs", "equation='ii'"},
    {"Einsum", "f3x4 f4x5 f5x2 -> f3x2", "equation='ij,jk,kl->il'"},
    {"Einsum", "f2x3x4 f4x5 -> f2x3x5", "equation='...i,ij->...j'"},
    {"Einsum", "f2x3x4 f1x4x5 -> f2x3x5", "equation='...ij,...jk->...ik'"},
    {"Einsum", "f3x4x7 f4x5 -> f3x5", "equation='ijx,jk->ik'"},
    {"Einsum", "f1x4 f3x4 -> f3", "equation='ij,ij->i'"},
    {"Einsum", "f2x3x4x5 f4x5x6 -> f2x6x3", "equation='bshd,hde->bes'"},
    {"Einsum", "f3x4x5 f5x6x3 -> f6x4x3", "equation='bik,kjb->jib'"},
    {"Einsum", "f2x3x4x5 f3x5 -> f2x3x4", "equation='bhid,hd->bhi'"},
    {"Einsum", "f2x3x4x5x6 f5x3x6x2x7 -> f4x7x2x3", "equation='abcde,dbeaf->cfab'"},
};

}  // namespace

std::span<const FunctionRow> EinsumReferences() { return kEinsumReferences; }
std::span<const CaseRow> EinsumCases() { return kEinsumCases; }

}  // namespace ckplan::reference
