// Numbers that costs and saved statistics are computed from, read off an operation's shapes.
// Products saturate at kManyFlops: beyond it TensorGraph::Create refuses the graph anyway.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "lib/model/model_impl.h"

namespace ckplan {

inline constexpr int64_t kManyFlops = int64_t{1} << 61;

int64_t SaturatingProduct(std::initializer_list<int64_t> factors);
int64_t SaturatingSum(int64_t a, int64_t b);
int64_t ElementsOf(const Value& value);
int64_t ElementBytes(const Value& value);  // At least 1.

struct AttentionShape {
  int64_t batch = 1;
  int64_t heads = 1;        // Of the queries.
  int64_t queries = 1;      // Sequence length of Q.
  int64_t keys = 1;         // Sequence length of K, past keys included.
  int64_t query_width = 1;  // Of one head.
  int64_t value_width = 1;
};
AttentionShape ReadAttention(const Model::Impl& model, const Operation& operation);

struct RecurrentShape {
  int64_t directions = 1;
  int64_t steps = 1;
  int64_t batch = 1;
  int64_t input = 1;
  int64_t hidden = 1;
};
RecurrentShape ReadRecurrent(const Model::Impl& model, const Operation& operation);

}  // namespace ckplan
