// How the heads of an Attention lie in memory, and its products of matrices.
//
// A unit is a head of the keys, with all heads of the queries that share it. Where each of those
// lies after the other ([batch, heads, rows, size]) they are one matrix of more rows, and all units
// of all samples are one batch. In [batch, rows, heads * size] they are parts of a unit, each
// multiplied for itself, and the samples are gone through one by one.
#pragma once

#include "lib/cuda/libraries.h"
#include "lib/ops/attention.h"
#include "lib/ops/op_spec.h"

namespace ckplan::cuda {

// Units of one sample that are multiplied in one call.
struct HeadBlock {
  int64_t sample = 0, unit = 0, units = 0;
};

// A tensor of heads. Strides are in elements.
struct Heads {
  int64_t rows = 1, size = 1;  // Of the matrix of one part of a unit.
  int64_t row_stride = 0, part_stride = 0, unit_stride = 0, sample_stride = 0;

  int64_t at(const HeadBlock& block) const {
    return block.sample * sample_stride + block.unit * unit_stride;
  }
};

struct AttentionLayout {
  AttentionLayout(const OpSpec& spec, const AttentionShape& shape);

  int64_t samples = 1, units = 1, parts = 1;
  int64_t heads = 1, queries = 1, keys = 1;  // Heads of queries; rows of a head.
  Heads q, k, v, y, p;                       // p: the scores, [batch, heads, queries, keys].
  ElementType type = ElementType::kFloat32;  // Of the factors of products.
  ElementType q_type, k_type, v_type, y_type;
  float scale = 1;
  bool is_causal = false;
};

struct HeadProduct {
  GemmShape gemm;           // For any batch.
  bool sums_parts = false;  // All parts of a unit have one result.
};

struct AttentionProducts {
  explicit AttentionProducts(const AttentionLayout& layout);

  HeadProduct scores, output;               // Forward.
  HeadProduct arriving, query, key, value;  // dP, dQ, dK, dV.
};

}  // namespace ckplan::cuda
