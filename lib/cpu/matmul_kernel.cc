#include "lib/cpu/matmul_kernel.h"

#include <cstring>

namespace ckplan::cpu {

namespace {

dnnl::memory::desc MatrixDesc(int64_t batch, int64_t rows, int64_t columns,
                              const MatrixLayout& layout) {
  const int64_t stored_columns = layout.is_transposed ? rows : columns;
  const int64_t stored_rows = layout.is_transposed ? columns : rows;
  const int64_t stride = layout.row_stride == 0 ? stored_columns : layout.row_stride;
  const int64_t across = layout.is_transposed ? 1 : stride;
  const int64_t along = layout.is_transposed ? stride : 1;
  const auto type = dnnl::memory::data_type::f32;
  if (batch == 1) {
    return {dnnl::memory::dims{rows, columns}, type, dnnl::memory::dims{across, along}};
  }
  const int64_t count = layout.is_shared ? 1 : batch;
  return {dnnl::memory::dims{count, rows, columns}, type,
          dnnl::memory::dims{stored_rows * stride, across, along}};
}

}  // namespace

MatMulKernel::MatMulKernel(const MatMulShape& shape)
    : a_(MatrixDesc(shape.batch, shape.m, shape.k, shape.a)),
      b_(MatrixDesc(shape.batch, shape.k, shape.n, shape.b)),
      c_(MatrixDesc(shape.batch, shape.m, shape.n, shape.c)) {
  dnnl::primitive_attr attributes = ScratchpadAttributes();
  dnnl::post_ops after;
  if (shape.alpha != 1) {
    after.append_eltwise(dnnl::algorithm::eltwise_linear, shape.alpha, 0);
  }
  if (shape.adds) after.append_sum(1);
  attributes.set_post_ops(after);
  const dnnl::memory::desc plain_b = b_;
  if (shape.packs_b) {
    b_ = {{shape.k, shape.n}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any};
  }
  const dnnl::matmul::primitive_desc description(device_.engine, a_, b_, c_, attributes);
  primitive_ = DnnlPrimitive::Of<dnnl::matmul>(description);
  b_ = description.weights_desc();
  if (shape.packs_b) packing_ = LayoutChange(device_, plain_b, b_);
}

void MatMulKernel::Pack(const float* b, float* packed, void* workspace) const {
  if (packing_.is_needed()) {
    packing_.Run(device_, b, packed, workspace);
  } else {
    std::memcpy(packed, b, b_.get_size());
  }
}

void MatMulKernel::Run(const float* a, const float* b, float* c, void* workspace) const {
  primitive_.Run(device_,
                 {{DNNL_ARG_SRC, &a_, a}, {DNNL_ARG_WEIGHTS, &b_, b}, {DNNL_ARG_DST, &c_, c}},
                 workspace);
}

}  // namespace ckplan::cpu
