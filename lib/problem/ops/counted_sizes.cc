#include "lib/problem/ops/counted_sizes.h"

#include <algorithm>

#include "lib/base/checked.h"

namespace ckplan {

int64_t SaturatingProduct(std::initializer_list<int64_t> factors) {
  int64_t product = 1;
  for (const int64_t factor : factors) {
    product = std::min(CheckedMul(product, factor).value_or(kManyFlops), kManyFlops);
  }
  return product;
}

int64_t SaturatingSum(int64_t a, int64_t b) {
  return std::min(CheckedAdd(a, b).value_or(kManyFlops), kManyFlops);
}

int64_t CountElements(const Operand& operand) {
  int64_t count = 1;
  for (const int64_t dim : operand.dims) {
    const auto product = CheckedMul(count, dim);
    if (dim < 0 || !product) return kManyFlops;
    count = *product;
  }
  return count;
}

int64_t CountBytes(const Operand& operand) {
  if (operand.planned) return operand.planned->bytes;
  return SaturatingProduct({CountElements(operand), SizeOf(operand.type)});
}

int64_t DimAt(const Operand& operand, size_t axis) {
  return axis < operand.dims.size() ? operand.dims[axis] : 1;
}

int64_t DimFromEnd(const Operand& operand, size_t from_end) {
  const size_t rank = operand.dims.size();
  return rank < from_end ? 1 : operand.dims[rank - from_end];
}

AttentionSizes CountAttention(const OpSpec& spec) {
  AttentionSizes sizes;
  if (spec.type == "FusedAttention") {
    sizes.batch = spec.Int("batch", 1);
    sizes.heads = spec.Int("heads", 1);
    sizes.queries = spec.Int("queries", 1);
    sizes.keys = spec.Int("keys", 1);
    sizes.query_width = spec.Int("size", 1);
    sizes.value_width = spec.Int("value_size", 1);
    return sizes;
  }
  const Operand& q = spec.input(0);
  const Operand& k = spec.input(1);
  const Operand& v = spec.input(2);
  if (!q.is_present || !k.is_present || !v.is_present) return sizes;
  sizes.batch = DimAt(q, 0);
  if (q.dims.size() == 4) {
    sizes.heads = DimAt(q, 1);
    sizes.queries = DimAt(q, 2);
    sizes.query_width = DimAt(q, 3);
  } else {  // [batch, sequence, heads * width]
    sizes.heads = std::max<int64_t>(1, spec.Int("q_num_heads", 1));
    sizes.queries = DimAt(q, 1);
    sizes.query_width = DimAt(q, 2) / sizes.heads;
  }
  if (k.dims.size() == 4) {
    sizes.keys = DimAt(k, 2);
    sizes.value_width = DimAt(v, 3);
  } else {
    sizes.keys = DimAt(k, 1);
    sizes.value_width = DimAt(v, 2) / std::max<int64_t>(1, spec.Int("kv_num_heads", 1));
  }
  if (spec.input(4).is_present) sizes.keys += DimAt(spec.input(4), 2);
  return sizes;
}

RecurrentSizes CountRecurrent(const OpSpec& spec) {
  RecurrentSizes sizes;
  const Operand& x = spec.input(0);
  const Operand& recurrence = spec.input(2);  // [directions, gates * hidden, hidden]
  if (!x.is_present || !recurrence.is_present) return sizes;
  const bool is_batch_first = spec.Int("layout", 0) == 1;
  sizes.steps = DimAt(x, is_batch_first ? 1 : 0);
  sizes.batch = DimAt(x, is_batch_first ? 0 : 1);
  sizes.input = DimAt(x, 2);
  sizes.directions = DimAt(recurrence, 0);
  sizes.hidden = DimAt(recurrence, 2);
  return sizes;
}

}  // namespace ckplan
