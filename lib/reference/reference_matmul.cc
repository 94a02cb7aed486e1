// Matrix products.
#include <algorithm>
#include <cctype>
#include <map>
#include <string>

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

// Where in a term of an equation a label stands, counted from the end; an ellipsis is the axes that
// the letters leave over, and its labels are the numbers from its end.
std::vector<int> LabelsOf(const std::string& term, size_t rank) {
  std::vector<int> labels;
  const size_t dots = std::count(term.begin(), term.end(), '.');
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

// Goes through all values of all labels, and adds each product where it belongs.
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

constexpr FunctionRow kRows[] = {
    {"Einsum", Einsum},
    {"Gemm", Gemm},
    {"MatMul", MatMul},
};

}  // namespace

std::span<const FunctionRow> MatMulFunctions() { return kRows; }

}  // namespace ckplan::reference
