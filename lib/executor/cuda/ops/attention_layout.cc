#include "lib/executor/cuda/ops/attention_layout.h"

#include "lib/executor/cuda/convert.h"

namespace ckplan::cuda {

namespace {

// `group` is the number of heads of this tensor in a unit.
Heads HeadsOf(const AttentionShape& shape, int64_t heads, int64_t rows, int64_t size,
              int64_t group) {
  Heads of;
  of.size = size;
  if (shape.is_head_major) {
    of.rows = group * rows;
    of.row_stride = size;
    of.unit_stride = of.rows * size;
    return of;
  }
  of.rows = rows;
  of.row_stride = heads * size;
  of.part_stride = group > 1 ? size : 0;
  of.unit_stride = group * size;
  of.sample_stride = rows * of.row_stride;
  return of;
}

MatrixView View(const Heads& heads, ElementType type, bool is_transposed = false) {
  return {type, is_transposed, heads.row_stride, heads.unit_stride};
}

}  // namespace

AttentionLayout::AttentionLayout(const OpSpec& spec, const AttentionShape& shape)
    : samples(shape.is_head_major ? 1 : shape.batch),
      units(shape.is_head_major ? shape.batch * shape.key_heads : shape.key_heads),
      parts(shape.is_head_major ? 1 : shape.group()),
      heads(shape.heads),
      queries(shape.queries),
      keys(shape.keys),
      q(HeadsOf(shape, shape.heads, shape.queries, shape.size, shape.group())),
      k(HeadsOf(shape, shape.key_heads, shape.keys, shape.size, 1)),
      v(HeadsOf(shape, shape.key_heads, shape.keys, shape.value_size, 1)),
      y(HeadsOf(shape, shape.heads, shape.queries, shape.value_size, shape.group())),
      q_type(spec.input(0).type),
      k_type(spec.input(1).type),
      v_type(spec.input(2).type),
      y_type(spec.output(0).type),
      scale(shape.scale),
      is_causal(shape.is_causal) {
  p.rows = q.rows;
  p.size = keys;
  p.row_stride = keys;
  p.part_stride = shape.scores();
  p.unit_stride = shape.group() * shape.scores();
  p.sample_stride = units * p.unit_stride;
  type = CommonType({q_type, k_type, v_type, y_type});
}

AttentionProducts::AttentionProducts(const AttentionLayout& layout) {
  const ElementType type = layout.type;
  const MatrixView sums = View(layout.p, ElementType::kFloat32);
  const int64_t rows = layout.q.rows;
  const auto product = [](int64_t m, int64_t n, int64_t k) {
    HeadProduct made;
    made.gemm.m = m;
    made.gemm.n = n;
    made.gemm.k = k;
    return made;
  };
  scores = product(rows, layout.keys, layout.q.size);
  scores.gemm.a = View(layout.q, type);
  scores.gemm.b = View(layout.k, type, true);
  scores.gemm.c = sums;
  scores.gemm.alpha = layout.scale;

  output = product(rows, layout.v.size, layout.keys);
  output.gemm.a = View(layout.p, type);
  output.gemm.b = View(layout.v, type);
  output.gemm.c = View(layout.y, layout.y_type);

  arriving = product(rows, layout.keys, layout.v.size);
  arriving.gemm.a = View(layout.y, type);
  arriving.gemm.b = View(layout.v, type, true);
  arriving.gemm.c = sums;

  query = product(rows, layout.q.size, layout.keys);
  query.gemm.a = View(layout.p, type);
  query.gemm.b = View(layout.k, type);
  query.gemm.c = View(layout.q, layout.q_type);
  query.gemm.alpha = layout.scale;

  key = product(layout.keys, layout.q.size, rows);
  key.gemm.a = View(layout.p, type, true);
  key.gemm.b = View(layout.q, type);
  key.gemm.c = View(layout.k, layout.k_type);
  key.gemm.alpha = layout.scale;
  key.sums_parts = true;

  value = product(layout.keys, layout.v.size, rows);
  value.gemm.a = View(layout.p, type, true);
  value.gemm.b = View(layout.y, type);
  value.gemm.c = View(layout.v, layout.v_type);
  value.sums_parts = true;
}

}  // namespace ckplan::cuda
