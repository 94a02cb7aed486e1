#include "lib/problem/ops/matmul.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "lib/problem/ops/op_checks.h"

namespace ckplan {

namespace {

Error MismatchError(const OpSpec& spec) {
  return InvalidOp(spec, fmt::format("its operands are {} and {}, which cannot be multiplied",
                                     TextOf(spec.input(0).dims), TextOf(spec.input(1).dims)));
}

Result<Dims> BroadcastLeading(const OpSpec& spec, const Dims& a, const Dims& b) {
  Dims dims(std::max(a.size(), b.size()), 1);
  for (const Dims* own : {&a, &b}) {
    const size_t missing = dims.size() - own->size();
    for (size_t i = 0; i < own->size(); ++i) {
      int64_t& dim = dims[i + missing];
      if (dim != 1 && (*own)[i] != 1 && dim != (*own)[i]) return MismatchError(spec);
      if ((*own)[i] != 1) dim = (*own)[i];
    }
  }
  return dims;
}

// A vector on the left is a row and a vector on the right a column; the output drops that axis.
Result<Done> CheckMatMulOutput(const OpSpec& spec, const MatMulShape& shape) {
  Dims expected = shape.leading;
  if (spec.input(0).dims.size() > 1) expected.push_back(shape.m);
  if (spec.input(1).dims.size() > 1) expected.push_back(shape.n);
  return RequireDims(spec, spec.output(0), "its output", expected);
}

Result<MatMulShape> ReadMatMul(const OpSpec& spec) {
  Dims a = spec.input(0).dims;
  Dims b = spec.input(1).dims;
  if (a.empty() || b.empty()) return MismatchError(spec);
  if (a.size() == 1) a.insert(a.begin(), 1);
  if (b.size() == 1) b.push_back(1);
  MatMulShape shape;
  shape.m = a[a.size() - 2];
  shape.k = a.back();
  shape.n = b.back();
  if (b[b.size() - 2] != shape.k) return MismatchError(spec);
  shape.a_leading.assign(a.begin(), a.end() - 2);
  shape.b_leading.assign(b.begin(), b.end() - 2);
  CKPLAN_ASSIGN_OR_RETURN(shape.leading, BroadcastLeading(spec, shape.a_leading, shape.b_leading));
  CKPLAN_RETURN_IF_ERROR(CheckMatMulOutput(spec, shape));
  if (Product(shape.b_leading) != 1) return shape;
  shape.m *= Product(shape.a_leading);
  shape.a_leading.clear();
  shape.b_leading.clear();
  shape.leading.clear();
  return shape;
}

Result<MatMulAddend> ReadAddend(const OpSpec& spec, const MatMulShape& shape) {
  MatMulAddend addend;
  const Operand& operand = spec.input(2);
  if (!operand.is_present) return addend;
  CKPLAN_RETURN_IF_ERROR(RequireFloat(spec, operand, "its third input"));
  addend.is_present = true;
  addend.factor = static_cast<float>(spec.Float("beta", 1));
  const Dims& dims = operand.dims;
  if (!dims.empty()) addend.columns = dims.back();
  if (dims.size() > 1) addend.rows = dims[dims.size() - 2];
  const bool fits = dims.size() <= 2 && (addend.rows == 1 || addend.rows == shape.m) &&
                    (addend.columns == 1 || addend.columns == shape.n);
  if (fits) return addend;
  return InvalidOp(spec, fmt::format("its third input is {}, which cannot be broadcast to [{},{}]",
                                     TextOf(dims), shape.m, shape.n));
}

Result<MatMulShape> ReadGemm(const OpSpec& spec) {
  const Dims& a = spec.input(0).dims;
  const Dims& b = spec.input(1).dims;
  if (a.size() != 2 || b.size() != 2) return MismatchError(spec);
  MatMulShape shape;
  shape.is_a_transposed = spec.Int("transA", 0) != 0;
  shape.is_b_transposed = spec.Int("transB", 0) != 0;
  shape.alpha = static_cast<float>(spec.Float("alpha", 1));
  shape.m = a[shape.is_a_transposed ? 1 : 0];
  shape.k = a[shape.is_a_transposed ? 0 : 1];
  shape.n = b[shape.is_b_transposed ? 0 : 1];
  if (b[shape.is_b_transposed ? 1 : 0] != shape.k) {
    return InvalidOp(spec, fmt::format("its operands are {} and {}, which with transA={} and "
                                       "transB={} cannot be multiplied",
                                       TextOf(a), TextOf(b), shape.is_a_transposed ? 1 : 0,
                                       shape.is_b_transposed ? 1 : 0));
  }
  CKPLAN_RETURN_IF_ERROR(RequireDims(spec, spec.output(0), "its output", {shape.m, shape.n}));
  CKPLAN_ASSIGN_OR_RETURN(shape.addend, ReadAddend(spec, shape));
  return shape;
}

}  // namespace

Result<MatMulShape> ReadMatMulShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireFloatTensors(spec, 2));
  CKPLAN_ASSIGN_OR_RETURN(MatMulShape shape,
                          spec.type == "Gemm" ? ReadGemm(spec) : ReadMatMul(spec));
  CKPLAN_RETURN_IF_ERROR(RequireLibrarySize(spec, "the number of rows of its product", shape.m));
  CKPLAN_RETURN_IF_ERROR(RequireLibrarySize(spec, "the number of columns of its product", shape.n));
  CKPLAN_RETURN_IF_ERROR(RequireLibrarySize(spec, "the number of terms of its sums", shape.k));
  CKPLAN_RETURN_IF_ERROR(
      RequireLibrarySize(spec, "the number of its products", Product(shape.leading)));
  return shape;
}

std::span<const FamilyRow> MatMulFamily() {
  static constexpr FamilyRow kRows[] = {
      {"Gemm", ValidateBy<ReadMatMulShape>},
      {"MatMul", ValidateBy<ReadMatMulShape>},
  };
  return kRows;
}

namespace {

// Sums the strides of all axes with this label, since a repeated label selects a diagonal.
int64_t StrideOf(const Term& term, char label) {
  int64_t stride = 1;
  int64_t sum = 0;
  for (size_t i = term.dims.size(); i-- > 0; stride *= term.dims[i]) {
    if (term.labels[i] == label && term.dims[i] != 1) sum += stride;
  }
  return sum;
}

bool HasFullUniqueAxes(const Term& term, const std::map<char, int64_t>& sizes) {
  for (size_t i = 0; i < term.labels.size(); ++i) {
    if (term.dims[i] != sizes.at(term.labels[i])) return false;
    if (term.labels.find(term.labels[i]) != i) return false;
  }
  return true;
}

// The axes of an ellipsis are labelled with single digits.
constexpr size_t kMaxAxes = 9;
constexpr std::string_view kEllipsis = "...";

// Checks that a term consists of letters and at most one ellipsis.
Result<Done> CheckLetters(const OpSpec& spec, std::string_view labels) {
  std::string letters(labels);
  const size_t at = letters.find(kEllipsis);
  if (at != std::string::npos) letters.erase(at, kEllipsis.size());
  const bool are_letters = std::all_of(letters.begin(), letters.end(), [](char c) {
    return std::isalpha(static_cast<unsigned char>(c)) != 0;
  });
  if (are_letters) return Done{};
  return InvalidOp(spec, fmt::format("its equation has the term \"{}\", which is not made of "
                                     "letters and at most one ellipsis",
                                     labels));
}

// Also checks that the term has a label for each axis.
Result<Done> CheckTerm(const OpSpec& spec, std::string_view labels, const Dims& dims) {
  CKPLAN_RETURN_IF_ERROR(CheckLetters(spec, labels));
  const bool has_ellipsis = labels.find(kEllipsis) != std::string_view::npos;
  const size_t letters = labels.size() - (has_ellipsis ? kEllipsis.size() : 0);
  const bool fits = has_ellipsis ? letters <= dims.size() : letters == dims.size();
  if (fits) return Done{};
  return InvalidOp(spec, fmt::format("its equation has the term \"{}\" for an operand of {} axes",
                                     labels, dims.size()));
}

std::string SpreadEllipsis(std::string labels, size_t rank) {
  const size_t at = labels.find(kEllipsis);
  if (at == std::string::npos) return labels;
  std::string digits;
  for (size_t i = rank - (labels.size() - kEllipsis.size()); i-- > 0;) {
    digits += static_cast<char>('0' + i);
  }
  return labels.replace(at, kEllipsis.size(), digits);
}

Result<Term> ReadTerm(const OpSpec& spec, std::string labels, const Dims& dims) {
  if (dims.size() > kMaxAxes) {
    return UnsupportedOp(
        spec, fmt::format("one of its operands has {} axes; at most {} are supported", dims.size(),
                          kMaxAxes));
  }
  CKPLAN_RETURN_IF_ERROR(CheckTerm(spec, labels, dims));
  return Term{SpreadEllipsis(std::move(labels), dims.size()), dims};
}

// Returns the result's labels for an equation without an arrow: the axes of the ellipses, then the
// labels that occur once, in alphabetical order.
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

int64_t Contraction::Count(const std::string& labels) const {
  const auto sizes = Sizes();
  int64_t count = 1;
  for (const char label : labels) count *= sizes.at(label);
  return count;
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
  if (!HasFullUniqueAxes(a, sizes) || !HasFullUniqueAxes(b, sizes) || !HasFullUniqueAxes(c, sizes))
    return std::nullopt;
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

namespace {

// An equation split into one factor per input and, if it has an arrow, the result.
struct Equation {
  std::vector<std::string> factors;
  std::optional<std::string> result;
};

Equation SplitEquation(const OpSpec& spec) {
  std::string text = spec.String("equation", "");
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  Equation equation;
  const size_t arrow = text.find("->");
  if (arrow != std::string::npos) {
    equation.result = text.substr(arrow + 2);
    text.resize(arrow);
  }
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    equation.factors.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return equation;
}

// Axes with the same label must have the same size or size 1.
Result<Done> CheckFactors(const OpSpec& spec, const Contraction& contraction) {
  const auto sizes = contraction.Sizes();
  for (const Term& factor : contraction.factors) {
    for (size_t i = 0; i < factor.labels.size(); ++i) {
      const int64_t size = sizes.at(factor.labels[i]);
      if (factor.dims[i] == 1 || factor.dims[i] == size) continue;
      return InvalidOp(spec,
                       fmt::format("its equation uses the label {} for axes of sizes {} and {}",
                                   factor.labels[i], factor.dims[i], size));
    }
  }
  return Done{};
}

Result<Done> CheckResult(const OpSpec& spec, const Contraction& contraction,
                         const std::map<char, int64_t>& sizes) {
  const Term& result = contraction.result;
  Dims expected;
  for (size_t i = 0; i < result.labels.size(); ++i) {
    const auto found = sizes.find(result.labels[i]);
    if (found == sizes.end() || result.labels.find(result.labels[i]) != i) {
      return InvalidOp(spec, fmt::format("its equation's result has the label {}, which must occur "
                                         "in an operand and only once in the result",
                                         result.labels[i]));
    }
    expected.push_back(found->second);
  }
  return RequireDims(spec, spec.output(0), "its output", expected);
}

Result<Done> CheckLibrarySizes(const OpSpec& spec, const Contraction& contraction) {
  const auto sizes = contraction.Sizes();
  Dims all;
  for (const auto& [label, size] : sizes) all.push_back(size);
  if (!SizeProduct(all).has_value()) {
    return UnsupportedOp(spec, "the number of its products does not fit 64 bits");
  }
  const std::optional<ProductLabels> product = FindProduct(contraction);
  if (!product.has_value()) return Done{};
  for (const std::string& labels : {product->batch, product->m, product->n, product->k}) {
    CKPLAN_RETURN_IF_ERROR(
        RequireLibrarySize(spec, "a side of its matrix product", contraction.Count(labels)));
  }
  return Done{};
}

Result<Done> CheckTermCount(const OpSpec& spec, const Equation& equation) {
  if (equation.factors.size() == spec.inputs.size()) return Done{};
  return InvalidOp(spec, fmt::format("its equation has {} terms for {} operands",
                                     equation.factors.size(), spec.inputs.size()));
}

Result<Done> ValidateEquation(const OpSpec& spec) {
  const Equation equation = SplitEquation(spec);
  CKPLAN_RETURN_IF_ERROR(CheckTermCount(spec, equation));
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    const Operand& operand = spec.inputs[i];
    const std::string& labels = equation.factors[i];
    CKPLAN_RETURN_IF_ERROR(operand.is_present ? CheckTerm(spec, labels, operand.dims)
                                              : CheckLetters(spec, labels));
  }
  return equation.result ? CheckLetters(spec, *equation.result) : Done{};
}

Result<Contraction> ReadContraction(const OpSpec& spec) {
  const Equation equation = SplitEquation(spec);
  CKPLAN_RETURN_IF_ERROR(CheckTermCount(spec, equation));
  Contraction contraction;
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    CKPLAN_ASSIGN_OR_RETURN(Term term, ReadTerm(spec, equation.factors[i], spec.inputs[i].dims));
    contraction.factors.push_back(std::move(term));
  }
  CKPLAN_RETURN_IF_ERROR(CheckFactors(spec, contraction));
  const auto sizes = contraction.Sizes();
  const Dims& dims = spec.output(0).dims;
  if (equation.result.has_value()) {
    CKPLAN_ASSIGN_OR_RETURN(contraction.result, ReadTerm(spec, *equation.result, dims));
  } else {
    contraction.result = {ImplicitResult(contraction.factors), dims};
  }
  CKPLAN_RETURN_IF_ERROR(CheckResult(spec, contraction, sizes));
  CKPLAN_RETURN_IF_ERROR(CheckLibrarySizes(spec, contraction));
  return contraction;
}

// Returns the contraction for the gradient of the factor at `position`: the output's gradient takes
// the place of that factor.
Contraction GradientOf(const Contraction& forward, size_t position) {
  Contraction gradient = forward;
  std::swap(gradient.factors[position], gradient.result);
  return gradient;
}

}  // namespace

Result<EinsumShape> ReadEinsumShape(const OpSpec& spec) {
  CKPLAN_RETURN_IF_ERROR(RequireFloatTensors(spec, std::max<size_t>(1, spec.inputs.size())));
  EinsumShape shape;
  CKPLAN_ASSIGN_OR_RETURN(shape.forward, ReadContraction(spec));
  shape.gradients.resize(spec.inputs.size());
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    if (spec.inputs[i].has_gradient) shape.gradients[i] = GradientOf(shape.forward, i);
  }
  return shape;
}

std::span<const FamilyRow> EinsumFamily() {
  static constexpr FamilyRow kRows[] = {
      {"Einsum", ValidateBy<ReadEinsumShape>, {}, ValidateEquation}};
  return kRows;
}

}  // namespace ckplan
