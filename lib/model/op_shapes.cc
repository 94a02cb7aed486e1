#include "lib/model/op_shapes.h"

#include <algorithm>

#include "lib/base/checked.h"

namespace ckplan {

namespace {

int64_t DimAt(const Value& value, size_t axis) {
  return axis < value.dims.size() ? value.dims[axis] : 1;
}

}  // namespace

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

int64_t ElementsOf(const Value& value) { return ElementCount(value.dims).value_or(kManyFlops); }

int64_t ElementBytes(const Value& value) {
  return std::max<int64_t>(1, TensorBytes(value.elem_type, {}).value_or(1));
}

AttentionShape ReadAttention(const Model::Impl& model, const Operation& operation) {
  AttentionShape shape;
  if (operation.input(0) == kNoValue || operation.input(1) == kNoValue ||
      operation.input(2) == kNoValue) {
    return shape;
  }
  const Value& q = model.value(operation.inputs[0]);
  const Value& k = model.value(operation.inputs[1]);
  const Value& v = model.value(operation.inputs[2]);
  shape.batch = DimAt(q, 0);
  if (q.dims.size() == 4) {
    shape.heads = DimAt(q, 1);
    shape.queries = DimAt(q, 2);
    shape.query_width = DimAt(q, 3);
  } else {  // [batch, sequence, heads * width]
    shape.heads = std::max<int64_t>(1, IntAttribute(*operation.node, "q_num_heads", 1));
    shape.queries = DimAt(q, 1);
    shape.query_width = DimAt(q, 2) / shape.heads;
  }
  if (k.dims.size() == 4) {
    shape.keys = DimAt(k, 2);
    shape.value_width = DimAt(v, 3);
  } else {
    shape.keys = DimAt(k, 1);
    const int64_t heads = std::max<int64_t>(1, IntAttribute(*operation.node, "kv_num_heads", 1));
    shape.value_width = DimAt(v, 2) / heads;
  }
  if (operation.input(4) != kNoValue) shape.keys += DimAt(model.value(operation.inputs[4]), 2);
  return shape;
}

RecurrentShape ReadRecurrent(const Model::Impl& model, const Operation& operation) {
  RecurrentShape shape;
  if (operation.input(0) == kNoValue || operation.input(2) == kNoValue) return shape;
  const Value& x = model.value(operation.inputs[0]);
  const Value& recurrence =
      model.value(operation.inputs[2]);  // [directions, gates * hidden, hidden]
  const bool is_batch_first = IntAttribute(*operation.node, "layout", 0) == 1;
  shape.steps = DimAt(x, is_batch_first ? 1 : 0);
  shape.batch = DimAt(x, is_batch_first ? 0 : 1);
  shape.input = DimAt(x, 2);
  shape.directions = DimAt(recurrence, 0);
  shape.hidden = DimAt(recurrence, 2);
  return shape;
}

}  // namespace ckplan
