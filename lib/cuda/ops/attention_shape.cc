#include "lib/cuda/ops/attention_shape.h"

#include <cmath>

#include "lib/cuda/convert.h"

namespace ckplan::cuda {

namespace {

// `group`: heads of this tensor in a unit.
Heads ReadHeads(const Operand& operand, int64_t heads, int64_t group) {
  const std::vector<int64_t>& dims = operand.dims;
  Heads of;
  if (dims.size() == 4) {
    of.rows = group * dims[2];
    of.size = dims[3];
    of.row_stride = of.size;
    of.unit_stride = of.rows * of.size;
    return of;
  }
  of.rows = dims[1];
  of.size = dims[2] / heads;
  of.row_stride = dims[2];
  of.part_stride = group > 1 ? of.size : 0;
  of.unit_stride = group * of.size;
  of.sample_stride = dims[1] * dims[2];
  return of;
}

MatrixView View(const Heads& heads, ElementType type, bool is_transposed = false) {
  return {type, is_transposed, heads.row_stride, heads.unit_stride};
}

}  // namespace

AttentionShape ReadAttention(const OpSpec& spec) {
  AttentionShape shape;
  const std::vector<int64_t>& q = spec.input(0).dims;
  const std::vector<int64_t>& k = spec.input(1).dims;
  const bool is_split = q.size() == 4;
  shape.heads = is_split ? q[1] : spec.Int("q_num_heads", 1);
  shape.queries = is_split ? q[2] : q[1];
  shape.keys = is_split ? k[2] : k[1];
  const int64_t key_heads = is_split ? k[1] : spec.Int("kv_num_heads", 1);
  const int64_t group = shape.heads / key_heads;
  shape.samples = is_split ? 1 : q[0];
  shape.units = is_split ? q[0] * key_heads : key_heads;
  shape.parts = is_split ? 1 : group;
  shape.q = ReadHeads(spec.input(0), shape.heads, group);
  shape.k = ReadHeads(spec.input(1), key_heads, 1);
  shape.v = ReadHeads(spec.input(2), key_heads, 1);
  shape.y = ReadHeads(spec.output(0), shape.heads, group);
  shape.p.rows = shape.q.rows;
  shape.p.size = shape.keys;
  shape.p.row_stride = shape.keys;
  shape.p.part_stride = shape.queries * shape.keys;
  shape.p.unit_stride = group * shape.queries * shape.keys;
  shape.p.sample_stride = shape.units * shape.p.unit_stride;
  shape.q_type = spec.input(0).type;
  shape.k_type = spec.input(1).type;
  shape.v_type = spec.input(2).type;
  shape.y_type = spec.output(0).type;
  shape.type = CommonType({shape.q_type, shape.k_type, shape.v_type, shape.y_type});
  const double usual = 1 / std::sqrt(static_cast<double>(shape.q.size));
  shape.scale = static_cast<float>(spec.Float("scale", usual));
  shape.is_causal = spec.Int("is_causal", 0) != 0;
  return shape;
}

AttentionProducts::AttentionProducts(const AttentionShape& shape) {
  const ElementType type = shape.type;
  const MatrixView sums = View(shape.p, ElementType::kFloat32);
  const int64_t rows = shape.q.rows;
  const auto product = [](int64_t m, int64_t n, int64_t k) {
    HeadProduct made;
    made.gemm.m = m;
    made.gemm.n = n;
    made.gemm.k = k;
    return made;
  };
  scores = product(rows, shape.keys, shape.q.size);
  scores.gemm.a = View(shape.q, type);
  scores.gemm.b = View(shape.k, type, true);
  scores.gemm.c = sums;
  scores.gemm.alpha = shape.scale;

  output = product(rows, shape.v.size, shape.keys);
  output.gemm.a = View(shape.p, type);
  output.gemm.b = View(shape.v, type);
  output.gemm.c = View(shape.y, shape.y_type);

  arriving = product(rows, shape.keys, shape.v.size);
  arriving.gemm.a = View(shape.y, type);
  arriving.gemm.b = View(shape.v, type, true);
  arriving.gemm.c = sums;

  query = product(rows, shape.q.size, shape.keys);
  query.gemm.a = View(shape.p, type);
  query.gemm.b = View(shape.k, type);
  query.gemm.c = View(shape.q, shape.q_type);
  query.gemm.alpha = shape.scale;

  key = product(shape.keys, shape.q.size, rows);
  key.gemm.a = View(shape.p, type, true);
  key.gemm.b = View(shape.q, type);
  key.gemm.c = View(shape.k, shape.k_type);
  key.gemm.alpha = shape.scale;
  key.sums_parts = true;

  value = product(shape.keys, shape.v.size, rows);
  value.gemm.a = View(shape.p, type, true);
  value.gemm.b = View(shape.y, type);
  value.gemm.c = View(shape.v, shape.v_type);
  value.sums_parts = true;
}

}  // namespace ckplan::cuda
