// Sizes from which work and saved statistics are counted, read from the operands of an operator.
//
// The planner counts any operator that it is given, including those that no backend can run. So
// nothing is checked here: an absent operand counts as 1, and products saturate at kManyFlops,
// beyond which TensorGraph::Create refuses the graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "lib/problem/ops/op_spec.h"

namespace ckplan {

inline constexpr int64_t kManyFlops = int64_t{1} << 61;

int64_t SaturatingProduct(std::initializer_list<int64_t> factors);
int64_t SaturatingSum(int64_t a, int64_t b);

int64_t CountElements(const Operand& operand);
int64_t CountBytes(const Operand& operand);
// DimAt and DimFromEnd return 1 if there is no such axis.
int64_t DimAt(const Operand& operand, size_t axis);
int64_t DimFromEnd(const Operand& operand, size_t from_end);

struct AttentionSizes {
  int64_t batch = 1;
  int64_t heads = 1;        // Heads of the queries.
  int64_t queries = 1;      // Sequence length of Q.
  int64_t keys = 1;         // Sequence length of K, past keys included.
  int64_t query_width = 1;  // Features of one head.
  int64_t value_width = 1;
};
AttentionSizes CountAttention(const OpSpec& spec);

struct RecurrentSizes {
  int64_t directions = 1;
  int64_t steps = 1;
  int64_t batch = 1;
  int64_t input = 1;
  int64_t hidden = 1;
};
RecurrentSizes CountRecurrent(const OpSpec& spec);

}  // namespace ckplan
