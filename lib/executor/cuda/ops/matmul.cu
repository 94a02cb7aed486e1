// MatMul and Gemm.
#include <array>
#include <memory>

#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/product.h"
#include "lib/executor/cuda/reduce.h"
#include "lib/executor/cuda/registry.h"
#include "lib/problem/ops/matmul.h"

namespace ckplan::cuda {

namespace {

// Returns, for each axis of `to`, the stride of an operand with the leading axes `leading` (all but
// the last two) and matrices of `size` elements.
Dims MatrixStrides(const Dims& leading, const Dims& to, int64_t size) {
  Dims strides = BroadcastStrides(leading, to);
  for (int64_t& stride : strides) stride *= size;
  return strides;
}

// Returns the product, with A and B as stored.
MatrixProduct MatMulProduct(const OpSpec& spec, const MatMulShape& shape) {
  MatrixProduct product;
  product.m = shape.m;
  product.n = shape.n;
  product.k = shape.k;
  product.alpha = shape.alpha;
  product.a = {spec.input(0).type, shape.is_a_transposed, shape.is_a_transposed ? shape.m : shape.k,
               spec.input(0).elements()};
  product.b = {spec.input(1).type, shape.is_b_transposed, shape.is_b_transposed ? shape.k : shape.n,
               spec.input(1).elements()};
  product.c = {spec.output(0).type, false, shape.n, spec.output(0).elements()};
  const Dims& leading = shape.leading;
  product.batch = Collapse(leading, {MatrixStrides(shape.a_leading, leading, shape.m * shape.k),
                                     MatrixStrides(shape.b_leading, leading, shape.k * shape.n),
                                     MatrixStrides(leading, leading, shape.m * shape.n)});
  return product;
}

// Gemm's third input, broadcast to the output's rows and columns.
class Addend {
 public:
  Addend(const OpSpec& spec, const MatMulShape& shape)
      : type_(spec.input(2).type),
        product_type_(spec.output(0).type),
        beta_(shape.addend.factor),
        rows_(shape.m),
        columns_(shape.n),
        own_rows_(shape.addend.rows),
        own_columns_(shape.addend.columns) {
    const bool sums_rows = own_rows_ == 1;
    const bool sums_columns = own_columns_ == 1;
    sums_ = ReduceShape::Of(own_rows_ * own_columns_,
                            (sums_rows ? rows_ : 1) * (sums_columns ? columns_ : 1), !sums_columns);
    result_stride_ = sums_columns ? columns_ : 1;
    element_stride_ = sums_columns ? 1 : columns_;
  }

  int64_t workspace() const { return sums_.workspace<float>(); }

  void Spread(Device& device, const void* from, void* to) const {
    const FloatsIn x(from, type_);
    const FloatsOut y(to, product_type_);
    const Divider columns(columns_);
    const float beta = beta_;
    const int64_t row_step = own_rows_ == 1 ? 0 : own_columns_;
    const int64_t column_step = own_columns_ == 1 ? 0 : 1;
    ForEach(device, rows_ * columns_, [=] CKPLAN_KERNEL(int64_t i) {
      int64_t column = i;
      const int64_t row = columns.Split(column);
      y.Set(i, beta * x[row * row_step + column * column_step]);
    });
  }

  void Gather(Device& device, const void* gradient, void* to, void* workspace) const {
    const FloatsIn from(gradient, product_type_);
    const FloatsOut sums(to, type_);
    const float beta = beta_;
    const int64_t result_stride = result_stride_;
    const int64_t element_stride = element_stride_;
    Reduce(
        device, sums_, 0.0F,
        [=] CKPLAN_KERNEL(int64_t result, int64_t i) {
          return from[result * result_stride + i * element_stride];
        },
        SumOf(), [=] CKPLAN_KERNEL(int64_t result, float sum) { sums.Set(result, beta * sum); },
        workspace);
  }

 private:
  ElementType type_, product_type_;
  float beta_;
  int64_t rows_, columns_;          // Dimensions of the output.
  int64_t own_rows_, own_columns_;  // Each is the output's dimension or 1.
  ReduceShape sums_;                // How to sum the output's gradient, with these strides:
  int64_t result_stride_ = 0, element_stride_ = 0;
};

class MatMulOp final : public PreparedOp {
 public:
  MatMulOp(const OpSpec& spec, Device& device, const MatMulShape& shape) : device_(device) {
    MatrixProduct product = MatMulProduct(spec, shape);
    for (size_t i = 0; i < 2; ++i) {
      if (!spec.input(i).has_gradient) continue;
      const GradientProduct gradient = GradientOf(product, i);
      gradients_[i] = std::make_unique<BatchedProduct>(device, gradient.product);
      has_gradient_left_[i] = gradient.has_gradient_left;
    }
    if (shape.addend.is_present) {
      addend_ = std::make_unique<Addend>(spec, shape);
      product.adds = true;
    }
    forward_ = std::make_unique<BatchedProduct>(device, product);
  }

  OpWorkspace workspace() const override {
    int64_t backward = addend_ ? addend_->workspace() : 0;
    for (const auto& gradient : gradients_) {
      if (gradient) backward = std::max(backward, gradient->workspace());
    }
    return {forward_->workspace(), backward};
  }

  void Forward(const ForwardCall& call) override {
    void* c = call.outputs[0];
    if (c == nullptr) return;
    if (addend_) addend_->Spread(device_, call.inputs[2], c);
    forward_->Run(call.inputs[0], call.inputs[1], c, call.workspace);
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    const void* dc = call.output_gradients[0];
    if (position == 2) {
      addend_->Gather(device_, dc, gradient, call.workspace);
      return;
    }
    const void* other = call.inputs[1 - position];
    const bool is_left = has_gradient_left_[position];
    gradients_[position]->Run(is_left ? dc : other, is_left ? other : dc, gradient, call.workspace);
  }

 private:
  Device& device_;
  std::unique_ptr<Addend> addend_;
  std::unique_ptr<BatchedProduct> forward_;
  std::array<std::unique_ptr<BatchedProduct>, 2> gradients_;  // Indexed by position of the operand.
  std::array<bool, 2> has_gradient_left_ = {};
};

Result<std::unique_ptr<PreparedOp>> PrepareMatMul(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const MatMulShape shape, ReadMatMulShape(spec));
  return Prepared<MatMulOp>(spec, device, shape);
}

constexpr OpRow kMatMulOps[] = {{"Gemm", PrepareMatMul}, {"MatMul", PrepareMatMul}};

}  // namespace

std::span<const OpRow> MatMulOps() { return kMatMulOps; }

}  // namespace ckplan::cuda
