#include "lib/executor/cuda/product.h"

#include <algorithm>
#include <cstddef>

namespace ckplan::cuda {

namespace {

constexpr size_t kResult = 2;  // The result's index among a batch's operands.

MatrixTensor Flipped(MatrixTensor matrix) {
  matrix.is_transposed = !matrix.is_transposed;
  return matrix;
}

Layout Reordered(const Layout& batch, size_t a, size_t b, size_t c) {
  return {batch.dims, {batch.strides[a], batch.strides[b], batch.strides[c]}};
}

// dA = alpha dC Bᵀ, or its transpose if A is transposed.
GradientProduct GradientOfA(const MatrixProduct& forward) {
  GradientProduct gradient;
  MatrixProduct& product = gradient.product;
  product.k = forward.n;
  product.c = forward.a;
  if (forward.a.is_transposed) {
    product.m = forward.k;
    product.n = forward.m;
    product.a = forward.b;
    product.b = Flipped(forward.c);
    product.batch = Reordered(forward.batch, 1, 2, 0);
  } else {
    product.m = forward.m;
    product.n = forward.k;
    product.a = forward.c;
    product.b = Flipped(forward.b);
    product.batch = Reordered(forward.batch, 2, 1, 0);
    gradient.has_gradient_left = true;
  }
  return gradient;
}

// dB = alpha Aᵀ dC, or its transpose if B is transposed.
GradientProduct GradientOfB(const MatrixProduct& forward) {
  GradientProduct gradient;
  MatrixProduct& product = gradient.product;
  product.k = forward.m;
  product.c = forward.b;
  if (forward.b.is_transposed) {
    product.m = forward.n;
    product.n = forward.k;
    product.a = Flipped(forward.c);
    product.b = forward.a;
    product.batch = Reordered(forward.batch, 2, 0, 1);
    gradient.has_gradient_left = true;
  } else {
    product.m = forward.k;
    product.n = forward.n;
    product.a = Flipped(forward.a);
    product.b = forward.c;
    product.batch = Reordered(forward.batch, 0, 2, 1);
  }
  return gradient;
}

// Merges batch axes into the matrices where possible: into the rows of A and C if B is constant
// along the axis, or into the columns of A and the rows of B if the products are summed along it.
void Fold(MatrixProduct& product) {
  Layout& batch = product.batch;
  for (size_t axis = batch.dims.size(); axis-- > 0;) {
    const int64_t a = batch.strides[0][axis];
    const int64_t b = batch.strides[1][axis];
    const int64_t c = batch.strides[kResult][axis];
    const bool makes_rows = !product.a.is_transposed && b == 0 &&
                            a == product.m * product.a.row_stride &&
                            c == product.m * product.c.row_stride;
    const bool makes_terms = product.a.is_transposed && !product.b.is_transposed && c == 0 &&
                             a == product.k * product.a.row_stride &&
                             b == product.k * product.b.row_stride;
    if (!makes_rows && !makes_terms) continue;
    (makes_rows ? product.m : product.k) *= batch.dims[axis];
    const auto at = static_cast<std::ptrdiff_t>(axis);
    batch.dims.erase(batch.dims.begin() + at);
    for (Dims& strides : batch.strides) strides.erase(strides.begin() + at);
  }
}

// Returns the longest batch axis along which C is not summed, or -1.
int LongestAxis(const Layout& batch) {
  int longest = -1;
  for (size_t axis = 0; axis < batch.dims.size(); ++axis) {
    if (batch.strides[kResult][axis] == 0) continue;
    if (longest < 0 || batch.dims[axis] > batch.dims[static_cast<size_t>(longest)]) {
      longest = static_cast<int>(axis);
    }
  }
  return longest;
}

void AddAxis(const Layout& from, size_t axis, Layout& to) {
  to.dims.push_back(from.dims[axis]);
  for (size_t k = 0; k < from.strides.size(); ++k) to.strides[k].push_back(from.strides[k][axis]);
}

}  // namespace

GradientProduct GradientOf(const MatrixProduct& forward, size_t factor) {
  GradientProduct gradient = factor == 0 ? GradientOfA(forward) : GradientOfB(forward);
  gradient.product.alpha = forward.alpha;
  gradient.product.c.is_transposed = false;
  return gradient;
}

BatchedProduct::BatchedProduct(Device& device, MatrixProduct product)
    : device_(device), outer_{{}, {{}, {}, {}}} {
  Fold(product);
  const Layout& batch = product.batch;
  const int longest = LongestAxis(batch);
  const auto is_outer = [&](size_t axis) {
    return static_cast<int>(axis) != longest && batch.dims[axis] > 1;
  };
  for (const bool is_sum : {false, true}) {
    if (is_sum) first_sum_ = outer_.dims.size();
    for (size_t axis = 0; axis < batch.dims.size(); ++axis) {
      if (is_outer(axis) && (batch.strides[kResult][axis] == 0) == is_sum) {
        AddAxis(batch, axis, outer_);
      }
    }
  }
  const bool sums = first_sum_ < outer_.dims.size();
  CKPLAN_CHECK(!(sums && product.adds), "a product cannot both sum batches and add to its result");
  const ElementType factors = CommonType({product.a.type, product.b.type, product.c.type});
  const ElementType result = sums ? ElementType::kFloat32 : product.c.type;
  a_ = Conversion(product.a.elements, product.a.type, factors, plan_);
  b_ = Conversion(product.b.elements, product.b.type, factors, plan_);
  c_ = Conversion(product.c.elements, product.c.type, result, plan_);
  const auto view = [&](const MatrixTensor& matrix, ElementType type, size_t operand) {
    const int64_t stride = longest < 0 ? 0 : batch.strides[operand][static_cast<size_t>(longest)];
    // A matrix without columns also needs a stride between its rows.
    return MatrixView{type, matrix.is_transposed, std::max<int64_t>(1, matrix.row_stride), stride};
  };
  shape_.batch = longest < 0 ? 1 : batch.dims[static_cast<size_t>(longest)];
  shape_.m = product.m;
  shape_.n = product.n;
  shape_.k = product.k;
  shape_.a = view(product.a, factors, 0);
  shape_.b = view(product.b, factors, 1);
  shape_.c = view(product.c, result, kResult);
  shape_.alpha = product.alpha;
  shape_.beta = product.adds ? 1.0F : 0.0F;
  scratch_ = plan_.Add(device.libraries().GemmWorkspace(shape_));
}

void BatchedProduct::Run(const void* a, const void* b, void* c, void* workspace) const {
  const void* const from_a = a_.Apply(device_, a, workspace);
  const void* const from_b = b_.Apply(device_, b, workspace);
  RunAll(from_a, from_b, c_.Target(c, workspace), workspace);
  c_.Return(device_, c, workspace);
}

void BatchedProduct::RunAll(const void* a, const void* b, void* c, void* workspace) const {
  GemmShape shape = shape_;
  const int64_t calls = outer_.count();
  for (int64_t call = 0; call < calls; ++call) {
    int64_t rest = call;
    bool continues_sum = false;
    int64_t at[] = {0, 0, 0};
    for (size_t axis = outer_.dims.size(); axis-- > 0;) {
      const int64_t index = rest % outer_.dims[axis];
      rest /= outer_.dims[axis];
      if (axis >= first_sum_ && index > 0) continues_sum = true;
      for (size_t k = 0; k < 3; ++k) at[k] += index * outer_.strides[k][axis];
    }
    shape.beta = continues_sum ? 1 : shape_.beta;
    device_.libraries().Gemm(shape, From(a, shape.a.type, at[0]), From(b, shape.b.type, at[1]),
                             From(c, shape.c.type, at[2]), BufferAt(workspace, scratch_));
  }
}

}  // namespace ckplan::cuda
