// MatMul and Gemm.
#include <algorithm>
#include <array>
#include <memory>

#include "lib/cuda/families.h"
#include "lib/cuda/index.h"
#include "lib/cuda/product.h"
#include "lib/cuda/reduce.h"

namespace ckplan::cuda {

namespace {

// By axis, what an operand with these leading axes has; of matrices of `size` elements.
Dims MatrixStrides(const Dims& leading, const Dims& to, int64_t size) {
  Dims strides = BroadcastStrides(leading, to);
  for (int64_t& stride : strides) stride *= size;
  return strides;
}

Dims Broadcast(const Dims& a, const Dims& b) {
  Dims dims(std::max(a.size(), b.size()), 1);
  for (const Dims* own : {&a, &b}) {
    const size_t lacking = dims.size() - own->size();
    for (size_t i = 0; i < own->size(); ++i) {
      if ((*own)[i] != 1) dims[i + lacking] = (*own)[i];
    }
  }
  return dims;
}

MatrixProduct ProductOf(const OpSpec& spec) {
  MatrixProduct product;
  product.a.type = spec.input(0).type;
  product.b.type = spec.input(1).type;
  product.c.type = spec.output(0).type;
  product.a.elements = spec.input(0).elements();
  product.b.elements = spec.input(1).elements();
  product.c.elements = spec.output(0).elements();
  return product;
}

// A vector on the left is a row, on the right a column.
MatrixProduct ReadMatMul(const OpSpec& spec) {
  Dims a = spec.input(0).dims;
  Dims b = spec.input(1).dims;
  if (a.size() == 1) a.insert(a.begin(), 1);
  if (b.size() == 1) b.push_back(1);
  MatrixProduct product = ProductOf(spec);
  product.m = a[a.size() - 2];
  product.k = a.back();
  product.n = b.back();
  a.resize(a.size() - 2);
  b.resize(b.size() - 2);
  if (product.b.elements == product.k * product.n) {
    product.m *= Product(a);  // One large product.
    a.clear();
    b.clear();
  }
  product.a.row_stride = product.k;
  product.b.row_stride = product.n;
  product.c.row_stride = product.n;
  const Dims leading = Broadcast(a, b);
  product.batch = Collapse(leading, {MatrixStrides(a, leading, product.m * product.k),
                                     MatrixStrides(b, leading, product.k * product.n),
                                     MatrixStrides(leading, leading, product.m * product.n)});
  return product;
}

// A and B as they lie in memory, C = alpha op(A) op(B).
MatrixProduct ReadGemm(const OpSpec& spec) {
  MatrixProduct product = ProductOf(spec);
  product.a.is_transposed = spec.Int("transA", 0) != 0;
  product.b.is_transposed = spec.Int("transB", 0) != 0;
  product.alpha = static_cast<float>(spec.Float("alpha", 1));
  product.m = spec.output(0).dims[0];
  product.n = spec.output(0).dims[1];
  product.k = spec.input(0).dims[product.a.is_transposed ? 0 : 1];
  product.a.row_stride = spec.input(0).dims[1];
  product.b.row_stride = spec.input(1).dims[1];
  product.c.row_stride = product.n;
  return product;
}

// Gemm's third input, broadcast to the rows and columns of the output.
class Addend {
 public:
  explicit Addend(const OpSpec& spec)
      : type_(spec.input(2).type),
        product_type_(spec.output(0).type),
        beta_(static_cast<float>(spec.Float("beta", 1))),
        rows_(spec.output(0).dims[0]),
        columns_(spec.output(0).dims[1]) {
    const Dims& dims = spec.input(2).dims;
    const size_t rank = dims.size();
    own_columns_ = rank > 0 ? dims[rank - 1] : 1;
    own_rows_ = rank > 1 ? dims[rank - 2] : 1;
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
  int64_t rows_, columns_;                  // Of the output.
  int64_t own_rows_ = 1, own_columns_ = 1;  // Each that of the output, or 1.
  ReduceShape sums_;                        // Of the gradient that arrives, and its places there.
  int64_t result_stride_ = 0, element_stride_ = 0;
};

class MatMulOp final : public PreparedOp {
 public:
  MatMulOp(const OpSpec& spec, Device& device, MatrixProduct product) : device_(device) {
    for (size_t i = 0; i < 2; ++i) {
      if (!spec.input(i).has_gradient) continue;
      const GradientProduct gradient = GradientOf(product, i);
      gradients_[i] = std::make_unique<BatchedProduct>(device, gradient.product);
      has_gradient_left_[i] = gradient.has_gradient_left;
    }
    if (spec.input(2).is_present) {
      addend_ = std::make_unique<Addend>(spec);
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
  std::array<std::unique_ptr<BatchedProduct>, 2> gradients_;  // By position of the operand.
  std::array<bool, 2> has_gradient_left_ = {};
};

template <MatrixProduct (*read)(const OpSpec& spec)>
Result<std::unique_ptr<PreparedOp>> Prepare(const OpSpec& spec, Device& device) {
  if (spec.input(0).elements() == 0 || spec.input(1).elements() == 0) {
    return Unsupported(spec, "a matrix of it is empty");
  }
  if (!IsFloat(spec.input(0).type)) {
    return Unsupported(spec, "its matrices are of an integer type");
  }
  return Prepared<MatMulOp>(spec, device, read(spec));
}

constexpr OpRow kRows[] = {
    {"Gemm", Prepare<ReadGemm>},
    {"MatMul", Prepare<ReadMatMul>},
};

}  // namespace

std::span<const OpRow> MatMulOps() { return kRows; }

}  // namespace ckplan::cuda
