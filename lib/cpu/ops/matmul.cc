// MatMul and Gemm.
#include <algorithm>
#include <array>

#include "lib/cpu/batched_matmul.h"
#include "lib/cpu/families.h"
#include "lib/cpu/dnnl_support.h"
#include "lib/cpu/floats.h"
#include "lib/cpu/layout.h"
#include "lib/cpu/parallel.h"

namespace ckplan::cpu {

namespace {

// The product as one of matrices, and which pairs of them are multiplied.
struct Problem {
  MatMulShape shape;  // Of the forward product.
  MatrixTriples triples;
};

// Number of the matrix that an operand of these leading axes has at `index`, which counts the
// leading axes of the output.
int64_t PlaceOf(const Dims& leading, const Dims& index) {
  int64_t place = 0;
  for (size_t i = 0; i < leading.size(); ++i) {
    const int64_t at = index[i + index.size() - leading.size()];
    place = place * leading[i] + (leading[i] == 1 ? 0 : at);
  }
  return place;
}

MatrixTriples PairMatrices(const Dims& a, const Dims& b) {
  Dims leading(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < leading.size(); ++i) {
    const auto widen = [&](const Dims& dims) {
      const size_t skipped = leading.size() - dims.size();
      if (i >= skipped && dims[i - skipped] != 1) leading[i] = dims[i - skipped];
    };
    widen(a);
    widen(b);
  }
  MatrixTriples triples;
  Dims index(leading.size(), 0);
  const int64_t count = Product(leading);
  for (int64_t c = 0; c < count; ++c) {
    int64_t rest = c;
    for (size_t i = leading.size(); i-- > 0; rest /= leading[i]) index[i] = rest % leading[i];
    triples.a.push_back(PlaceOf(a, index));
    triples.b.push_back(PlaceOf(b, index));
    triples.c.push_back(c);
  }
  return triples;
}

// A vector on the left is a row, on the right a column.
Problem ReadMatMul(const OpSpec& spec) {
  Dims a = spec.input(0).dims;
  Dims b = spec.input(1).dims;
  if (a.size() == 1) a.insert(a.begin(), 1);
  if (b.size() == 1) b.push_back(1);
  Problem problem;
  MatMulShape& shape = problem.shape;
  shape.m = a[a.size() - 2];
  shape.k = a.back();
  shape.n = b.back();
  a.resize(a.size() - 2);
  b.resize(b.size() - 2);
  if (Product(b) == 1) {  // One large product.
    shape.m *= Product(a);
    a.clear();
    b.clear();
  }
  problem.triples = PairMatrices(a, b);
  return problem;
}

// A and B as they lie in memory, C = alpha op(A) op(B).
Problem ReadGemm(const OpSpec& spec) {
  Problem problem;
  MatMulShape& shape = problem.shape;
  shape.a.is_transposed = spec.Int("transA", 0) != 0;
  shape.b.is_transposed = spec.Int("transB", 0) != 0;
  shape.alpha = static_cast<float>(spec.Float("alpha", 1));
  shape.m = spec.output(0).dims[0];
  shape.n = spec.output(0).dims[1];
  shape.k = spec.input(0).dims[shape.a.is_transposed ? 0 : 1];
  problem.triples = {{0}, {0}, {0}};
  return problem;
}

MatrixLayout Flipped(MatrixLayout layout) {
  layout.is_transposed = !layout.is_transposed;
  return layout;
}

// The product that is the gradient of an operand: of the gradient that arrives and the other one.
struct GradientProduct {
  std::unique_ptr<BatchedMatMul> product;
  bool has_gradient_left = false;  // Else the other operand is the left factor.
};

GradientProduct MakeGradient(const MatMulShape& shape, MatrixTriples triples, bool is_left) {
  return {std::make_unique<BatchedMatMul>(shape, std::move(triples)), is_left};
}

// dA = dC op(B)ᵀ, or its transpose where A is transposed.
GradientProduct GradientOfA(const Problem& problem) {
  const MatMulShape& forward = problem.shape;
  const MatrixTriples& of = problem.triples;
  MatMulShape shape;
  shape.alpha = forward.alpha;
  shape.k = forward.n;
  if (forward.a.is_transposed) {
    shape.m = forward.k;
    shape.n = forward.m;
    shape.a = forward.b;
    shape.b.is_transposed = true;
    return MakeGradient(shape, {of.b, of.c, of.a}, false);
  }
  shape.m = forward.m;
  shape.n = forward.k;
  shape.b = Flipped(forward.b);
  return MakeGradient(shape, {of.c, of.b, of.a}, true);
}

// dB = op(A)ᵀ dC, or its transpose where B is transposed.
GradientProduct GradientOfB(const Problem& problem) {
  const MatMulShape& forward = problem.shape;
  const MatrixTriples& of = problem.triples;
  MatMulShape shape;
  shape.alpha = forward.alpha;
  shape.k = forward.m;
  if (forward.b.is_transposed) {
    shape.m = forward.n;
    shape.n = forward.k;
    shape.a.is_transposed = true;
    shape.b = forward.a;
    return MakeGradient(shape, {of.c, of.a, of.b}, true);
  }
  shape.m = forward.k;
  shape.n = forward.n;
  shape.a = Flipped(forward.a);
  return MakeGradient(shape, {of.a, of.c, of.b}, false);
}

// Gemm's third input, broadcast to the rows and columns of the output.
class Addend {
 public:
  explicit Addend(const OpSpec& spec)
      : beta_(static_cast<float>(spec.Float("beta", 1))),
        rows_(spec.output(0).dims[0]),
        columns_(spec.output(0).dims[1]) {
    const Dims& dims = spec.input(2).dims;
    const size_t rank = dims.size();
    own_columns_ = rank > 0 ? dims[rank - 1] : 1;
    own_rows_ = rank > 1 ? dims[rank - 2] : 1;
  }

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
  int64_t rows_, columns_;          // Of the output.
  int64_t own_rows_, own_columns_;  // Each that of the output, or 1.
};

class MatMulOp final : public PreparedOp {
 public:
  MatMulOp(const OpSpec& spec, const Problem& problem) {
    MatMulShape shape = problem.shape;
    if (spec.input(2).is_present) {
      addend_ = std::make_unique<Addend>(spec);
      shape.adds = true;
    }
    forward_ = std::make_unique<BatchedMatMul>(shape, problem.triples);
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
    const GradientProduct& of = gradients_[position];
    if (of.has_gradient_left) {
      of.product->Run(dc, other, result, call.workspace);
    } else {
      of.product->Run(other, dc, result, call.workspace);
    }
  }

 private:
  std::unique_ptr<Addend> addend_;
  std::unique_ptr<BatchedMatMul> forward_;
  std::array<GradientProduct, 2> gradients_;  // By position of the operand.
};

template <Problem (*read)(const OpSpec& spec)>
Result<std::unique_ptr<PreparedOp>> Prepare(const OpSpec& spec) {
  const Problem problem = read(spec);
  const MatMulShape& shape = problem.shape;
  if (shape.m == 0 || shape.n == 0 || shape.k == 0 || problem.triples.c.empty()) {
    return Unsupported(spec, "a matrix of it is empty");
  }
  if (spec.input(0).type != ElementType::kFloat32) {
    return Unsupported(spec, "its matrices are of an integer type");
  }
  return Guarded(spec, [&] { return std::make_unique<MatMulOp>(spec, problem); });
}

constexpr OpRow kOps[] = {
    {"Gemm", Prepare<ReadGemm>},
    {"MatMul", Prepare<ReadMatMul>},
};

}  // namespace

std::span<const OpRow> MatMulOps() { return kOps; }

}  // namespace ckplan::cpu
