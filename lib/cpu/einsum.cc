// Einsum. The gradient of an operand is an Einsum itself, of the arriving gradient and the other
// operands. One of two operands, each with other axes, is a matrix product between changes of
// layout; any other is summed up element by element.
#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "lib/cpu/batched_matmul.h"
#include "lib/cpu/dnn_families.h"
#include "lib/cpu/dnnl_support.h"
#include "lib/cpu/floats.h"
#include "lib/cpu/layout.h"
#include "lib/cpu/parallel.h"

namespace ckplan::cpu {

namespace {

// An operand: by axis its label, and its size, which is 1 where it is broadcast.
struct Term {
  std::string labels;
  Dims dims;
};

// result = sum over all other labels of the product of the factors.
struct Contraction {
  std::vector<Term> factors;
  Term result;

  std::map<char, int64_t> Sizes() const {
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
};

class Contractor {
 public:
  virtual ~Contractor() = default;
  virtual int64_t workspace() const { return 0; }
  virtual void Run(const std::vector<const float*>& factors, float* result,
                   void* workspace) const = 0;
};

// One of nested loops: how far each factor, and last the result, moves with a label.
struct Loop {
  int64_t size = 1;
  Dims strides;
};

class PlainContractor final : public Contractor {
 public:
  explicit PlainContractor(const Contraction& contraction) {
    const size_t count = contraction.factors.size();
    result_size_ = Product(contraction.result.dims);
    for (const auto& [label, size] : contraction.Sizes()) {
      Loop loop{size, Dims(count + 1, 0)};
      for (size_t i = 0; i <= count; ++i) {
        loop.strides[i] = StrideOf(i < count ? contraction.factors[i] : contraction.result, label);
      }
      (loop.strides[count] != 0 ? outer_ : inner_).push_back(loop);
    }
  }

  void Run(const std::vector<const float*>& factors, float* result, void*) const override {
    std::fill_n(result, result_size_, 0.0F);  // A diagonal leaves the rest as it is.
    int64_t outer = 1;
    int64_t inner = 1;
    for (const Loop& loop : outer_) outer *= loop.size;
    for (const Loop& loop : inner_) inner *= loop.size;
    ParallelFor(outer, std::max<int64_t>(1, kGrain / 8 / inner), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        double sum = 0;
        for (int64_t i = 0; i < inner; ++i) {
          double product = 1;
          for (size_t f = 0; f < factors.size(); ++f) {
            product *=
                static_cast<double>(factors[f][OffsetAt(outer_, o, f) + OffsetAt(inner_, i, f)]);
          }
          sum += product;
        }
        result[OffsetAt(outer_, o, factors.size())] = static_cast<float>(sum);
      }
    });
  }

 private:
  // Of all axes with this label: together they are a diagonal.
  static int64_t StrideOf(const Term& term, char label) {
    int64_t stride = 1;
    int64_t sum = 0;
    for (size_t i = term.dims.size(); i-- > 0; stride *= term.dims[i]) {
      if (term.labels[i] == label && term.dims[i] != 1) sum += stride;
    }
    return sum;
  }

  static int64_t OffsetAt(const std::vector<Loop>& loops, int64_t number, size_t term) {
    int64_t offset = 0;
    for (const Loop& loop : loops) {
      offset += number % loop.size * loop.strides[term];
      number /= loop.size;
    }
    return offset;
  }

  std::vector<Loop> outer_, inner_;  // With and without the result.
  int64_t result_size_ = 0;
};

// Labels of a product of two: of both factors and the result, of one factor and the result, and of
// both factors alone.
struct ProductLabels {
  std::string batch, m, n, k;
};

bool IsPlain(const Term& term, const std::map<char, int64_t>& sizes) {
  for (size_t i = 0; i < term.labels.size(); ++i) {
    if (term.dims[i] != sizes.at(term.labels[i])) return false;
    if (term.labels.find(term.labels[i]) != i) return false;
  }
  return true;
}

// Nothing where the contraction is no product of matrices.
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

// The term seen with its axes in another order.
dnnl::memory::desc DescOf(const Term& term, const std::string& order) {
  Dims dims;
  Dims strides;
  for (const char label : order) {
    const size_t axis = term.labels.find(label);
    dims.push_back(term.dims[axis]);
    strides.push_back(
        Product({term.dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1, term.dims.end()}));
  }
  if (order.empty()) return PlainDesc({1});
  return {dims, dnnl::memory::data_type::f32, strides};
}

dnnl::memory::desc PlainDescOf(const Term& term, const std::string& order) {
  return PlainDesc(DescOf(term, order).get_dims());
}

class ProductContractor final : public Contractor {
 public:
  ProductContractor(const Contraction& contraction, const ProductLabels& labels) {
    const Term& a = contraction.factors[0];
    const Term& b = contraction.factors[1];
    const Term& c = contraction.result;
    const std::string a_order = labels.batch + labels.m + labels.k;
    const std::string b_order = labels.batch + labels.k + labels.n;
    const std::string c_order = labels.batch + labels.m + labels.n;
    changes_[0] = LayoutChange(device_, DescOf(a, a_order), PlainDescOf(a, a_order));
    changes_[1] = LayoutChange(device_, DescOf(b, b_order), PlainDescOf(b, b_order));
    changes_[2] = LayoutChange(device_, PlainDescOf(c, c_order), DescOf(c, c_order));
    const auto sizes = contraction.Sizes();
    const auto count = [&](const std::string& of) {
      int64_t product = 1;
      for (const char label : of) product *= sizes.at(label);
      return product;
    };
    MatrixTriples triples;
    for (int64_t i = 0; i < count(labels.batch); ++i) triples.c.push_back(i);
    triples.a = triples.b = triples.c;
    product_ = std::make_unique<BatchedMatMul>(
        MatMulShape{.m = count(labels.m), .n = count(labels.n), .k = count(labels.k)}, triples);
    PlanWorkspace({Product(a.dims), Product(b.dims), Product(c.dims)});
  }

  int64_t workspace() const override { return plan_.total(); }

  void Run(const std::vector<const float*>& factors, float* result,
           void* workspace) const override {
    void* scratch = FloatsAt(workspace, scratch_);
    std::array<const float*, 2> operands = {factors[0], factors[1]};
    for (size_t i = 0; i < 2; ++i) {
      if (!changes_[i].is_needed()) continue;
      float* moved = FloatsAt(workspace, copies_[i]);
      changes_[i].Run(device_, factors[i], moved, scratch);
      operands[i] = moved;
    }
    const bool moves_result = changes_[2].is_needed();
    float* product = moves_result ? FloatsAt(workspace, copies_[2]) : result;
    product_->Run(operands[0], operands[1], product, scratch);
    if (moves_result) changes_[2].Run(device_, product, result, scratch);
  }

 private:
  void PlanWorkspace(const std::array<int64_t, 3>& sizes) {
    int64_t scratch = product_->workspace();
    for (size_t i = 0; i < 3; ++i) {
      if (!changes_[i].is_needed()) continue;
      copies_[i] = plan_.Add(sizes[i] * static_cast<int64_t>(sizeof(float)));
      scratch = std::max(scratch, changes_[i].workspace());
    }
    scratch_ = plan_.Add(scratch);
  }

  DnnlDevice device_;
  std::array<LayoutChange, 3> changes_;  // Of both factors, and back for the result.
  std::unique_ptr<BatchedMatMul> product_;
  WorkspacePlan plan_;
  std::array<int64_t, 3> copies_ = {};
  int64_t scratch_ = 0;
};

std::unique_ptr<Contractor> MakeContractor(const Contraction& contraction) {
  if (const auto labels = FindProduct(contraction)) {
    return std::make_unique<ProductContractor>(contraction, *labels);
  }
  return std::make_unique<PlainContractor>(contraction);
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

// Of the factor at `position`: the arriving gradient takes its place.
Contraction GradientOf(const Contraction& forward, size_t position) {
  Contraction gradient = forward;
  std::swap(gradient.factors[position], gradient.result);
  return gradient;
}

class EinsumOp final : public PreparedOp {
 public:
  EinsumOp(const OpSpec& spec, const Contraction& contraction)
      : forward_(MakeContractor(contraction)), gradients_(spec.inputs.size()) {
    for (size_t i = 0; i < spec.inputs.size(); ++i) {
      if (!spec.inputs[i].has_gradient) continue;
      gradients_[i] = MakeContractor(GradientOf(contraction, i));
      workspace_.backward = std::max(workspace_.backward, gradients_[i]->workspace());
    }
    workspace_.forward = forward_->workspace();
  }

  OpWorkspace workspace() const override { return workspace_; }

  void Forward(const ForwardCall& call) override {
    if (call.outputs[0] == nullptr) return;
    forward_->Run(Factors(call.inputs), Floats(call.outputs[0]), call.workspace);
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    std::vector<const float*> factors = Factors(call.inputs);
    factors[position] = Floats(call.output_gradients[0]);
    gradients_[position]->Run(factors, Floats(gradient), call.workspace);
  }

 private:
  static std::vector<const float*> Factors(std::span<const void* const> inputs) {
    std::vector<const float*> factors;
    for (const void* input : inputs) factors.push_back(Floats(input));
    return factors;
  }

  std::unique_ptr<Contractor> forward_;
  std::vector<std::unique_ptr<Contractor>> gradients_;
  OpWorkspace workspace_;
};

Result<std::unique_ptr<PreparedOp>> Prepare(const OpSpec& spec) {
  for (const Operand& input : spec.inputs) {
    if (input.elements() == 0) return Unsupported(spec, "an operand of it is empty");
    if (input.type != ElementType::kFloat32) {
      return Unsupported(spec, "an operand of it is of an integer type");
    }
    if (input.dims.size() > 9) return Unsupported(spec, "an operand of it has more than 9 axes");
  }
  const Contraction contraction = ReadEquation(spec);
  return Guarded(spec, [&] { return std::make_unique<EinsumOp>(spec, contraction); });
}

constexpr OpRow kOps[] = {{"Einsum", Prepare}};

}  // namespace

std::span<const OpRow> EinsumOps() { return kOps; }

}  // namespace ckplan::cpu
