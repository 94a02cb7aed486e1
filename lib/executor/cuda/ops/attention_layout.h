// Memory layout of the heads of an Attention, and its matrix products.
//
// A unit is one head of the keys together with all query heads that share it. If the tensor is
// [batch, heads, rows, size], the query heads of a unit are contiguous and form one matrix with
// more rows, and all units of all samples are one batch. If the tensor is [batch, rows, heads *
// size], the query heads are separate parts of the unit, each multiplied separately, and samples
// are processed one by one.
#pragma once

#include "lib/executor/cuda/libraries.h"
#include "lib/problem/ops/attention.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan::cuda {

// A range of units of one sample that are multiplied in one call.
struct HeadBlock {
  int64_t sample = 0, unit = 0, units = 0;
};

// The layout of a tensor of heads. Strides are in elements.
struct Heads {
  int64_t rows = 1, size = 1;  // The matrix of one part of a unit.
  int64_t row_stride = 0, part_stride = 0, unit_stride = 0, sample_stride = 0;

  int64_t at(const HeadBlock& block) const {
    return block.sample * sample_stride + block.unit * unit_stride;
  }
};

struct AttentionLayout {
  AttentionLayout(const OpSpec& spec, const AttentionShape& shape);

  int64_t samples = 1, units = 1, parts = 1;
  int64_t heads = 1, queries = 1, keys = 1;  // Heads of the queries; rows per head.
  Heads q, k, v, y, p;                       // p has the scores: [batch, heads, queries, keys].
  ElementType type = ElementType::kFloat32;  // Type of the factors of products.
  ElementType q_type, k_type, v_type, y_type;
  float scale = 1;
  bool is_causal = false;
};

struct HeadProduct {
  GemmShape gemm;           // `batch` is set at each call.
  bool sums_parts = false;  // All parts of a unit add to one result.
};

struct AttentionProducts {
  explicit AttentionProducts(const AttentionLayout& layout);

  HeadProduct scores, output;               // Forward.
  HeadProduct arriving, query, key, value;  // dP, dQ, dK, dV.
};

}  // namespace ckplan::cuda
