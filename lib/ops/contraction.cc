#include "lib/ops/contraction.h"

#include <algorithm>
#include <utility>

namespace ckplan {

namespace {

// Of all axes with this label: together they are a diagonal.
int64_t StrideOf(const Term& term, char label) {
  int64_t stride = 1;
  int64_t sum = 0;
  for (size_t i = term.dims.size(); i-- > 0; stride *= term.dims[i]) {
    if (term.labels[i] == label && term.dims[i] != 1) sum += stride;
  }
  return sum;
}

bool IsPlain(const Term& term, const std::map<char, int64_t>& sizes) {
  for (size_t i = 0; i < term.labels.size(); ++i) {
    if (term.dims[i] != sizes.at(term.labels[i])) return false;
    if (term.labels.find(term.labels[i]) != i) return false;
  }
  return true;
}

// The axes of an ellipsis get the digits as labels, the last one '0'.
std::string SpreadEllipsis(std::string labels, size_t rank) {
  const size_t at = labels.find("...");
  if (at == std::string::npos) return labels;
  std::string digits;
  for (size_t i = rank - std::min(rank, labels.size() - 3); i-- > 0;) {
    digits += static_cast<char>('0' + i);
  }
  return labels.replace(at, 3, digits);
}

// Without an arrow: what the ellipses stand for, then all labels that are there once, by alphabet.
std::string ImplicitResult(const std::vector<Term>& factors) {
  std::map<char, int> counts;
  for (const Term& factor : factors) {
    for (const char label : factor.labels) ++counts[label];
  }
  std::string digits;
  std::string letters;
  for (const auto& [label, count] : counts) {
    if (label <= '9') {
      digits.insert(digits.begin(), label);
    } else if (count == 1) {
      letters += label;
    }
  }
  return digits + letters;
}

}  // namespace

std::map<char, int64_t> Contraction::Sizes() const {
  std::map<char, int64_t> sizes;
  const auto widen = [&](const Term& term) {
    for (size_t i = 0; i < term.labels.size(); ++i) {
      int64_t& size = sizes.try_emplace(term.labels[i], 1).first->second;
      size = std::max(size, term.dims[i]);
    }
  };
  for (const Term& factor : factors) widen(factor);
  widen(result);
  return sizes;
}

std::vector<ContractionLoop> LoopsOf(const Contraction& contraction) {
  std::vector<ContractionLoop> loops;
  for (const auto& [label, size] : contraction.Sizes()) {
    ContractionLoop& loop = loops.emplace_back();
    loop.size = size;
    for (const Term& factor : contraction.factors) loop.strides.push_back(StrideOf(factor, label));
    loop.strides.push_back(StrideOf(contraction.result, label));
  }
  return loops;
}

std::optional<ProductLabels> FindProduct(const Contraction& contraction) {
  if (contraction.factors.size() != 2) return std::nullopt;
  const auto sizes = contraction.Sizes();
  const Term& a = contraction.factors[0];
  const Term& b = contraction.factors[1];
  const Term& c = contraction.result;
  if (!IsPlain(a, sizes) || !IsPlain(b, sizes) || !IsPlain(c, sizes)) return std::nullopt;
  ProductLabels labels;
  for (const auto& [label, size] : sizes) {
    const bool in_a = a.labels.find(label) != std::string::npos;
    const bool in_b = b.labels.find(label) != std::string::npos;
    const bool in_c = c.labels.find(label) != std::string::npos;
    if (in_a + in_b + in_c < 2) return std::nullopt;
    std::string& kind = !in_c ? labels.k : !in_b ? labels.m : !in_a ? labels.n : labels.batch;
    kind += label;
  }
  return labels;
}

Contraction ReadEquation(const OpSpec& spec) {
  std::string equation = spec.String("equation", "");
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  const size_t arrow = std::min(equation.find("->"), equation.size());
  Contraction contraction;
  size_t begin = 0;
  for (const Operand& input : spec.inputs) {
    const size_t end = std::min(equation.find(',', begin), arrow);
    contraction.factors.push_back(
        {SpreadEllipsis(equation.substr(begin, end - begin), input.dims.size()), input.dims});
    begin = std::min(end + 1, arrow);
  }
  Term& result = contraction.result;
  result.dims = spec.output(0).dims;
  result.labels = arrow == equation.size()
                      ? ImplicitResult(contraction.factors)
                      : SpreadEllipsis(equation.substr(arrow + 2), result.dims.size());
  return contraction;
}

Contraction GradientOf(const Contraction& forward, size_t position) {
  Contraction gradient = forward;
  std::swap(gradient.factors[position], gradient.result);
  return gradient;
}

}  // namespace ckplan
