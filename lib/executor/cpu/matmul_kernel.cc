#include "lib/executor/cpu/matmul_kernel.h"

#include <algorithm>
#include <cstring>

namespace ckplan::cpu {

namespace {

using Desc = dnnl::memory::desc;
constexpr auto kType = dnnl::memory::data_type::f32;

// Rows of B whose distance is a multiple of this many elements map to the same cache sets. oneDNN
// then runs at half its speed (measured: 55 instead of 100 Gflop/s per core) unless B is first
// copied to a packed layout, panel by panel.
constexpr int64_t kBadStride = 1024;
constexpr int64_t kPanel = 512;   // Columns.
constexpr int64_t kFewRows = 32;  // With fewer rows of A the copies don't pay off.

int64_t StrideOf(int64_t rows, int64_t columns, const MatrixLayout& layout) {
  if (layout.row_stride != 0) return layout.row_stride;
  return layout.is_transposed ? rows : columns;
}

Desc MatrixDesc(int64_t batch, int64_t rows, int64_t columns, const MatrixLayout& layout) {
  const int64_t stored_rows = layout.is_transposed ? columns : rows;
  const int64_t stride = StrideOf(rows, columns, layout);
  const int64_t across = layout.is_transposed ? 1 : stride;
  const int64_t along = layout.is_transposed ? stride : 1;
  if (batch == 1) {
    return {dnnl::memory::dims{rows, columns}, kType, dnnl::memory::dims{across, along}};
  }
  const int64_t count = layout.is_shared ? 1 : batch;
  return {dnnl::memory::dims{count, rows, columns}, kType,
          dnnl::memory::dims{stored_rows * stride, across, along}};
}

bool HasCacheConflicts(int64_t stride) { return stride % kBadStride == 0; }

// Returns how many columns of B are computed at once: all of them, or a panel.
int64_t ChoosePanel(const ProductShape& shape) {
  const bool is_bad = shape.batch == 1 && !shape.packs_b && !shape.b.is_transposed &&
                      !shape.c.is_transposed &&
                      HasCacheConflicts(StrideOf(shape.k, shape.n, shape.b));
  if (!is_bad || shape.n % kPanel != 0 || shape.m <= kFewRows) return shape.n;
  // oneDNN copies a transposed A again for each panel, slowly if A's own stride is bad.
  const bool copies_slowly =
      shape.a.is_transposed && HasCacheConflicts(StrideOf(shape.m, shape.k, shape.a));
  return copies_slowly && shape.n > 2 * kPanel ? shape.n : kPanel;
}

}  // namespace

MatMulKernel::MatMulKernel(const ProductShape& shape)
    : columns_(shape.n),
      panel_(ChoosePanel(shape)),
      packs_panels_(panel_ < shape.n),
      a_(MatrixDesc(shape.batch, shape.m, shape.k, shape.a)) {
  dnnl::primitive_attr attributes = ScratchpadAttributes();
  dnnl::post_ops after;
  if (shape.alpha != 1) {
    after.append_eltwise(dnnl::algorithm::eltwise_linear, shape.alpha, 0);
  }
  if (shape.adds) after.append_sum(1);
  attributes.set_post_ops(after);
  MatrixLayout b = shape.b;
  MatrixLayout c = shape.c;
  b.row_stride = StrideOf(shape.k, shape.n, shape.b);
  c.row_stride = StrideOf(shape.m, shape.n, shape.c);
  const Desc plain_b = MatrixDesc(shape.batch, shape.k, panel_, b);
  c_ = MatrixDesc(shape.batch, shape.m, panel_, c);
  const bool is_packed = shape.packs_b || packs_panels_;
  const Desc wanted_b =
      is_packed ? Desc({shape.k, panel_}, kType, dnnl::memory::format_tag::any) : plain_b;
  const dnnl::matmul::primitive_desc description(device_.engine, a_, wanted_b, c_, attributes);
  primitive_ = DnnlPrimitive::Of<dnnl::matmul>(description);
  b_ = description.weights_desc();
  if (is_packed) packing_ = LayoutChange(device_, plain_b, b_);
  if (packs_panels_) packed_ = plan_.Add(packed_bytes());
  scratch_ = plan_.Add(std::max(primitive_.workspace(), packing_.workspace()));
}

void MatMulKernel::Pack(const float* b, float* packed, void* workspace) const {
  if (packing_.is_needed()) {
    packing_.Run(device_, b, packed, FloatsAt(workspace, scratch_));
  } else {
    std::memcpy(packed, b, b_.get_size());
  }
}

void MatMulKernel::Run(const float* a, const float* b, float* c, void* workspace) const {
  void* scratch = FloatsAt(workspace, scratch_);
  for (int64_t first = 0; first < columns_; first += panel_) {
    const float* own_b = b + first;
    if (packs_panels_ && packing_.is_needed()) {
      float* packed = FloatsAt(workspace, packed_);
      packing_.Run(device_, own_b, packed, scratch);
      own_b = packed;
    }
    primitive_.Run(
        device_,
        {{DNNL_ARG_SRC, &a_, a}, {DNNL_ARG_WEIGHTS, &b_, own_b}, {DNNL_ARG_DST, &c_, c + first}},
        scratch);
  }
}

namespace {

// True if `places` is 0, 1, 2, ..., so that the matrices are used in memory order.
bool IsSequence(const std::vector<int64_t>& places) {
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

bool IsOneMatrix(const std::vector<int64_t>& places) {
  return std::all_of(places.begin(), places.end(), [](int64_t place) { return place == 0; });
}

}  // namespace

BatchedMatMul::BatchedMatMul(ProductShape shape, MatrixTriples triples)
    : triples_(std::move(triples)),
      a_size_(shape.m * shape.k),
      b_size_(shape.k * shape.n),
      c_size_(shape.m * shape.n) {
  for (const int64_t place : triples_.c) c_count_ = std::max(c_count_, place + 1);
  const bool has_one_a = IsOneMatrix(triples_.a);
  const bool has_one_b = IsOneMatrix(triples_.b);
  is_one_call_ = IsSequence(triples_.c) && (has_one_a || IsSequence(triples_.a)) &&
                 (has_one_b || IsSequence(triples_.b));
  adds_ = !is_one_call_ && c_count_ < static_cast<int64_t>(triples_.c.size());
  shape.batch = is_one_call_ ? static_cast<int64_t>(triples_.c.size()) : 1;
  shape.a.is_shared = has_one_a;
  shape.b.is_shared = has_one_b;
  shape.adds = shape.adds || adds_;
  product_ = std::make_unique<MatMulKernel>(shape);
}

void BatchedMatMul::Run(const float* a, const float* b, float* c, void* workspace) const {
  if (is_one_call_) {
    product_->Run(a, b, c, workspace);
    return;
  }
  if (adds_) std::memset(c, 0, static_cast<size_t>(c_count_ * c_size_) * sizeof(float));
  for (size_t i = 0; i < triples_.c.size(); ++i) {
    product_->Run(a + triples_.a[i] * a_size_, b + triples_.b[i] * b_size_,
                  c + triples_.c[i] * c_size_, workspace);
  }
}

}  // namespace ckplan::cpu
