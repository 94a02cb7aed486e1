// MatMul and Gemm.
#include "lib/problem/ops/matmul.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/executor/cpu/dnnl_support.h"
#include "lib/executor/cpu/matmul_kernel.h"
#include "lib/executor/cpu/parallel.h"
#include "lib/executor/cpu/registry.h"
#include "lib/executor/cpu/strided_copy.h"

namespace ckplan::cpu {

namespace {

// The operator as a product of lists of matrices, and the pairs to multiply.
struct Problem {
  ProductShape shape;  // Shape of the forward product.
  MatrixTriples triples;
};

// Returns the index of the operand's matrix for the output's matrix at `index`. `leading` has the
// operand's leading axes (all but the last two); `index` counts the output's matrices.
int64_t PlaceOf(const Dims& leading, const Dims& index) {
  int64_t place = 0;
  for (size_t i = 0; i < leading.size(); ++i) {
    const int64_t at = index[i + index.size() - leading.size()];
    place = place * leading[i] + (leading[i] == 1 ? 0 : at);
  }
  return place;
}

// Returns one pair of matrices per output matrix.
MatrixTriples PairMatrices(const MatMulShape& shape) {
  const Dims& leading = shape.leading;
  MatrixTriples triples;
  Dims index(leading.size(), 0);
  const int64_t count = Product(leading);
  for (int64_t c = 0; c < count; ++c) {
    int64_t rest = c;
    for (size_t i = leading.size(); i-- > 0; rest /= leading[i]) index[i] = rest % leading[i];
    triples.a.push_back(PlaceOf(shape.a_leading, index));
    triples.b.push_back(PlaceOf(shape.b_leading, index));
    triples.c.push_back(c);
  }
  return triples;
}

Problem ProblemOf(const MatMulShape& shape) {
  Problem problem;
  problem.shape.m = shape.m;
  problem.shape.n = shape.n;
  problem.shape.k = shape.k;
  problem.shape.a.is_transposed = shape.is_a_transposed;
  problem.shape.b.is_transposed = shape.is_b_transposed;
  problem.shape.alpha = shape.alpha;
  problem.triples = PairMatrices(shape);
  return problem;
}

MatrixLayout Flipped(MatrixLayout layout) {
  layout.is_transposed = !layout.is_transposed;
  return layout;
}

// The product that computes an operand's gradient from the output's gradient and the other operand.
struct GradientProduct {
  std::unique_ptr<BatchedMatMul> product;
  bool has_gradient_left = false;  // Otherwise the other operand is on the left.
};

GradientProduct MakeGradient(const ProductShape& shape, MatrixTriples triples, bool is_left) {
  return {std::make_unique<BatchedMatMul>(shape, std::move(triples)), is_left};
}

// Computes dA = dC op(B)ᵀ, or its transpose if A is transposed.
GradientProduct GradientOfA(const Problem& problem) {
  const ProductShape& forward = problem.shape;
  const MatrixTriples& triples = problem.triples;
  ProductShape shape;
  shape.alpha = forward.alpha;
  shape.k = forward.n;
  if (forward.a.is_transposed) {
    shape.m = forward.k;
    shape.n = forward.m;
    shape.a = forward.b;
    shape.b.is_transposed = true;
    return MakeGradient(shape, {triples.b, triples.c, triples.a}, false);
  }
  shape.m = forward.m;
  shape.n = forward.k;
  shape.b = Flipped(forward.b);
  return MakeGradient(shape, {triples.c, triples.b, triples.a}, true);
}

// Computes dB = op(A)ᵀ dC, or its transpose if B is transposed.
GradientProduct GradientOfB(const Problem& problem) {
  const ProductShape& forward = problem.shape;
  const MatrixTriples& triples = problem.triples;
  ProductShape shape;
  shape.alpha = forward.alpha;
  shape.k = forward.m;
  if (forward.b.is_transposed) {
    shape.m = forward.n;
    shape.n = forward.k;
    shape.a.is_transposed = true;
    shape.b = forward.a;
    return MakeGradient(shape, {triples.c, triples.a, triples.b}, true);
  }
  shape.m = forward.k;
  shape.n = forward.n;
  shape.a = Flipped(forward.a);
  return MakeGradient(shape, {triples.a, triples.c, triples.b}, false);
}

// Gemm's third input, broadcast to the output's rows and columns.
class Addend {
 public:
  explicit Addend(const MatMulShape& shape)
      : beta_(shape.addend.factor),
        rows_(shape.m),
        columns_(shape.n),
        own_rows_(shape.addend.rows),
        own_columns_(shape.addend.columns) {}

  void Spread(const float* from, float* to) const {
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, columns_));
    ParallelFor(rows_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const float* source = from + (own_rows_ == 1 ? 0 : row * own_columns_);
        float* target = to + row * columns_;
        const int64_t step = own_columns_ == 1 ? 0 : 1;
        for (int64_t i = 0; i < columns_; ++i) target[i] = beta_ * source[i * step];
      }
    });
  }

  void Gather(const float* gradient, float* to) const {
    ParallelFor(own_columns_, own_columns_ == columns_ ? 64 : 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = 0; row < own_rows_; ++row) {
        for (int64_t i = begin; i < end; ++i) {
          to[row * own_columns_ + i] = beta_ * static_cast<float>(SumOnto(gradient, row, i));
        }
      }
    });
  }

 private:
  double SumOnto(const float* gradient, int64_t own_row, int64_t own_column) const {
    const int64_t first_row = own_rows_ == 1 ? 0 : own_row;
    const int64_t last_row = own_rows_ == 1 ? rows_ : own_row + 1;
    const int64_t first_column = own_columns_ == 1 ? 0 : own_column;
    const int64_t last_column = own_columns_ == 1 ? columns_ : own_column + 1;
    double sum = 0;
    for (int64_t row = first_row; row < last_row; ++row) {
      for (int64_t i = first_column; i < last_column; ++i) {
        sum += static_cast<double>(gradient[row * columns_ + i]);
      }
    }
    return sum;
  }

  float beta_;
  int64_t rows_, columns_;          // Dimensions of the output.
  int64_t own_rows_, own_columns_;  // Each is the output's dimension or 1.
};

class MatMulOp final : public PreparedOp {
 public:
  MatMulOp(const OpSpec& spec, const MatMulShape& shape) {
    const Problem problem = ProblemOf(shape);
    ProductShape forward = problem.shape;
    if (shape.addend.is_present) {
      addend_ = std::make_unique<Addend>(shape);
      forward.adds = true;
    }
    forward_ = std::make_unique<BatchedMatMul>(forward, problem.triples);
    if (spec.input(0).has_gradient) {
      gradients_[0] = GradientOfA(problem);
    }
    if (spec.input(1).has_gradient) {
      gradients_[1] = GradientOfB(problem);
    }
  }

  OpWorkspace workspace() const override {
    int64_t backward = 0;
    for (const GradientProduct& gradient : gradients_) {
      if (gradient.product) backward = std::max(backward, gradient.product->workspace());
    }
    return {forward_->workspace(), backward};
  }

  void Forward(const ForwardCall& call) override {
    float* c = Floats(call.outputs[0]);
    if (c == nullptr) return;
    if (addend_) addend_->Spread(Floats(call.inputs[2]), c);
    forward_->Run(Floats(call.inputs[0]), Floats(call.inputs[1]), c, call.workspace);
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    const float* dc = Floats(call.output_gradients[0]);
    float* result = Floats(gradient);
    if (position == 2) {
      addend_->Gather(dc, result);
      return;
    }
    const float* other = Floats(call.inputs[1 - position]);
    const GradientProduct& chosen = gradients_[position];
    if (chosen.has_gradient_left) {
      chosen.product->Run(dc, other, result, call.workspace);
    } else {
      chosen.product->Run(other, dc, result, call.workspace);
    }
  }

 private:
  std::unique_ptr<Addend> addend_;
  std::unique_ptr<BatchedMatMul> forward_;
  std::array<GradientProduct, 2> gradients_;  // Indexed by position of the operand.
};

Result<std::unique_ptr<PreparedOp>> PrepareMatMul(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const MatMulShape shape, ReadMatMulShape(spec));
  const int64_t matrices = Product(shape.leading);
  if (matrices > kMaxMatrices) {
    return Unsupported(spec, fmt::format("it multiplies {} pairs of matrices; at most {} are "
                                         "supported",
                                         matrices, kMaxMatrices));
  }
  return CatchDnnlErrors(spec, [&] { return std::make_unique<MatMulOp>(spec, shape); });
}

constexpr OpRow kMatMulOps[] = {{"Gemm", PrepareMatMul}, {"MatMul", PrepareMatMul}};

}  // namespace

std::span<const OpRow> MatMulOps() { return kMatMulOps; }

// Einsum. An operand's gradient is itself an Einsum of the output's gradient and the other
// operands. An Einsum of two operands without repeated axes is a matrix product between layout
// changes; any other is summed element by element.

namespace {

class Contractor {
 public:
  virtual ~Contractor() = default;
  virtual int64_t workspace() const { return 0; }
  virtual void Run(const std::vector<const float*>& factors, float* result,
                   void* workspace) const = 0;
};

class PlainContractor final : public Contractor {
 public:
  explicit PlainContractor(const Contraction& contraction) {
    result_size_ = Product(contraction.result.dims);
    for (const ContractionLoop& loop : LoopsOf(contraction)) {
      (loop.strides.back() != 0 ? outer_ : inner_).push_back(loop);
    }
  }

  void Run(const std::vector<const float*>& factors, float* result, void*) const override {
    std::fill_n(result, result_size_, 0.0F);  // Elements off a diagonal stay zero.
    int64_t outer = 1;
    int64_t inner = 1;
    for (const ContractionLoop& loop : outer_) outer *= loop.size;
    for (const ContractionLoop& loop : inner_) inner *= loop.size;
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
  static int64_t OffsetAt(const std::vector<ContractionLoop>& loops, int64_t number, size_t term) {
    int64_t offset = 0;
    for (const ContractionLoop& loop : loops) {
      offset += number % loop.size * loop.strides[term];
      number /= loop.size;
    }
    return offset;
  }

  std::vector<ContractionLoop> outer_, inner_;  // The axes of the result, and the summed axes.
  int64_t result_size_ = 0;
};

// Describes the term with its axes permuted to `order`.
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
    MatrixTriples triples;
    for (int64_t i = 0; i < contraction.Count(labels.batch); ++i) triples.c.push_back(i);
    triples.a = triples.b = triples.c;
    product_ = std::make_unique<BatchedMatMul>(ProductShape{.m = contraction.Count(labels.m),
                                                            .n = contraction.Count(labels.n),
                                                            .k = contraction.Count(labels.k)},
                                               triples);
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
  // The layout changes of both factors before the product, and of the result after it.
  std::array<LayoutChange, 3> changes_;
  std::unique_ptr<BatchedMatMul> product_;
  WorkspacePlan plan_;
  std::array<int64_t, 3> copies_ = {};
  int64_t scratch_ = 0;
};

std::unique_ptr<Contractor> MakeContractor(const Contraction& contraction) {
  const auto labels = FindProduct(contraction);
  if (labels.has_value() && contraction.Count(labels->batch) <= kMaxMatrices) {
    return std::make_unique<ProductContractor>(contraction, *labels);
  }
  return std::make_unique<PlainContractor>(contraction);
}

class EinsumOp final : public PreparedOp {
 public:
  explicit EinsumOp(const EinsumShape& shape)
      : forward_(MakeContractor(shape.forward)), gradients_(shape.gradients.size()) {
    for (size_t i = 0; i < gradients_.size(); ++i) {
      if (!shape.gradients[i].has_value()) continue;
      gradients_[i] = MakeContractor(*shape.gradients[i]);
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

Result<std::unique_ptr<PreparedOp>> PrepareEinsum(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const EinsumShape shape, ReadEinsumShape(spec));
  return CatchDnnlErrors(spec, [&] { return std::make_unique<EinsumOp>(shape); });
}

constexpr OpRow kEinsumOps[] = {{"Einsum", PrepareEinsum}};

}  // namespace

std::span<const OpRow> EinsumOps() { return kEinsumOps; }

}  // namespace ckplan::cpu
