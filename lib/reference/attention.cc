// Attention.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/reference/families.h"

namespace ckplan::reference {

namespace {

// Returns element i of row r of head h, in either layout.
double At(const Tensor& x, int64_t heads, int64_t n, int64_t h, int64_t r, int64_t i) {
  if (x.rank() == 4) return x[Offset(x, {n, h, r, i})];
  return x[Offset(x, {n, r, h * (x.dim(2) / heads) + i})];
}

double Masked(const Tensor& mask, const Index& at, double score) {
  const double value = mask[Offset(mask, at)];
  if (mask.type != ElementType::kBool) return score + value;
  return value != 0 ? score : -std::numeric_limits<double>::infinity();
}

void SoftmaxInPlace(std::vector<double>& row) {
  const double highest = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (double& value : row) {
    value = std::isinf(highest) ? 0 : std::exp(value - highest);
    sum += value;
  }
  for (double& value : row) value = sum == 0 ? 0 : value / sum;
}

void Attention(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Tensor& q = inputs[0];
  const Tensor& k = inputs[1];
  const Tensor& v = inputs[2];
  Tensor& y = outputs[0];
  const bool is_split = q.rank() == 4;
  const int64_t heads = is_split ? q.dim(1) : spec.Int("q_num_heads", 1);
  const int64_t key_heads = is_split ? k.dim(1) : spec.Int("kv_num_heads", 1);
  const int64_t keys = is_split ? k.dim(2) : k.dim(1);
  const int64_t size = is_split ? q.dim(3) : q.dim(2) / heads;
  const int64_t value_size = is_split ? v.dim(3) : v.dim(2) / key_heads;
  const double scale = spec.Float("scale", 1 / std::sqrt(static_cast<double>(size)));
  ForEach({q.dim(0), heads, is_split ? q.dim(2) : q.dim(1)}, [&](const Index& at, int64_t) {
    const int64_t key_head = at[1] / (heads / key_heads);
    std::vector<double> row(static_cast<size_t>(keys), 0.0);
    for (int64_t j = 0; j < keys; ++j) {
      double& score = row[static_cast<size_t>(j)];
      for (int64_t i = 0; i < size; ++i) {
        score +=
            scale * At(q, heads, at[0], at[1], at[2], i) * At(k, key_heads, at[0], key_head, j, i);
      }
      if (inputs.size() > 3 && inputs[3].is_present) {
        score = Masked(inputs[3], {at[0], at[1], at[2], j}, score);
      }
      if (spec.Int("is_causal", 0) != 0 && j > at[2]) {
        score = -std::numeric_limits<double>::infinity();
      }
    }
    SoftmaxInPlace(row);
    for (int64_t i = 0; i < value_size; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < keys; ++j) {
        sum += row[static_cast<size_t>(j)] * At(v, key_heads, at[0], key_head, j, i);
      }
      const Index to =
          is_split ? Index{at[0], at[1], at[2], i} : Index{at[0], at[2], at[1] * value_size + i};
      y[Offset(y, to)] = sum;
    }
  });
}

constexpr FunctionRow kAttentionReferences[] = {
    {"Attention", Attention},
};

constexpr CaseRow kAttentionCases[] = {
    {"Attention@23", "f2x3x5x4 f2x3x6x4 f2x3x6x4 -> f2x3x5x4"},
    {"Attention@23", "f2x3x5x4 f2x3x6x4 f2x3x6x2 b5x6 -> f2x3x5x2", "scale=0.5 is_causal=0"},
    {"Attention@23", "f2x3x5x4 f2x3x6x4 f2x3x6x2 b2x1x5x6* -> f2x3x5x2", "softcap=0.0"},
    {"Attention@23", "f2x3x5x4 f2x3x6x4 f2x3x6x2 f2x1x1x6~ -> f2x3x5x2"},
    {"Attention@23", "f2x3x5x4 f2x3x6x4 f2x3x6x2 f3x5x1* -> f2x3x5x2"},
    {"Attention@23", "f1x2x3x4 f1x2x4x4 f1x2x4x4 b3x4@[1,1,0,0,0,0,0,0,1,1,1,1] -> f1x2x3x4"},
    {"Attention@23", "f2x2x5x4 f2x2x5x4 f2x2x5x4 -> f2x2x5x4", "is_causal=1"},
    {"Attention@23", "f2x2x3x4 f2x2x5x4 f2x2x5x4 b3x5 -> f2x2x3x4", "is_causal=1"},
    {"Attention@23", "f2x6x5x4 f2x2x6x4 f2x2x6x4 -> f2x6x5x4"},
    {"Attention@23", "f2x4x5x4~ f2x1x6x4 f2x1x6x4~ -> f2x4x5x4"},
    {"Attention@23", "f2x5x12 f2x6x12 f2x6x9 -> f2x5x9", "q_num_heads=3 kv_num_heads=3"},
    {"Attention@23", "f2x5x24 f2x6x8 f2x6x6 b5x6 -> f2x5x18", "q_num_heads=6 kv_num_heads=2"},
    {"Attention@23", "f1x2x40x16 f1x2x40x16 f1x2x40x16 -> f1x2x40x16", "is_causal=1"},
};

}  // namespace

std::span<const FunctionRow> AttentionReferences() { return kAttentionReferences; }
std::span<const CaseRow> AttentionCases() { return kAttentionCases; }

}  // namespace ckplan::reference
