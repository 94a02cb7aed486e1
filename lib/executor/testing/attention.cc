// Attention.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "lib/executor/testing/op_case.h"

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

// ---- FusedAttention ----

// A tensor of heads, with its axes in any order.
struct Rows {
  const OpSpec& spec;
  std::string axes;
  int64_t heads = 1, rows = 1, size = 1;

  int64_t At(int64_t n, int64_t h, int64_t r, int64_t i) const {
    int64_t offset = 0;
    for (const char axis : axes) {
      const bool is_batch = axis == 'b', is_head = axis == 'h', is_row = axis == 's';
      const int64_t dim =
          is_batch ? spec.Int("batch", 1) : (is_head ? heads : (is_row ? rows : size));
      offset = offset * dim + (is_batch ? n : (is_head ? h : (is_row ? r : i)));
    }
    return offset;
  }
};

// Returns this score's element of a mask or bias.
double TermAt(const Tensor& term, const std::vector<int64_t>& dims, const Index& at) {
  int64_t offset = 0;
  for (size_t i = 0; i < dims.size(); ++i) offset = offset * dims[i] + at[i] % dims[i];
  return term[offset];
}

double ScoreWithTerms(const OpSpec& spec, std::span<const Tensor> inputs, const Index& at,
                      double score) {
  constexpr double kHidden = -std::numeric_limits<double>::infinity();
  if (spec.Int("is_causal", 0) != 0 && at[3] > at[2]) return kHidden;
  if (inputs.size() > 3 && inputs[3].is_present) {
    const double value = TermAt(inputs[3], spec.Ints("mask_dims"), at);
    if (inputs[3].type != ElementType::kBool) {
      score += value;
    } else if ((value != 0) == (spec.Int("mask_hides", 0) != 0)) {
      return spec.Float("fill", kHidden);
    }
  }
  if (inputs.size() <= 4 || !inputs[4].is_present) return score;
  const double value = TermAt(inputs[4], spec.Ints("bias_dims"), at);
  if (inputs[4].type != ElementType::kBool) return score + value;
  return value != 0 ? score : kHidden;
}

void FusedAttention(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const int64_t heads = spec.Int("heads", 1), key_heads = spec.Int("key_heads", 1);
  const int64_t queries = spec.Int("queries", 1), keys = spec.Int("keys", 1);
  const int64_t size = spec.Int("size", 1), value_size = spec.Int("value_size", 1);
  const Rows q = {spec, spec.String("q_axes", "bhsd"), heads, queries, size};
  const Rows k = {spec, spec.String("k_axes", "bhsd"), key_heads, keys, size};
  const Rows v = {spec, spec.String("v_axes", "bhsd"), key_heads, keys, value_size};
  const Rows y = {spec, spec.String("y_axes", "bhsd"), heads, queries, value_size};
  ForEach({spec.Int("batch", 1), heads, queries}, [&](const Index& at, int64_t) {
    const int64_t key_head = at[1] / (heads / key_heads);
    std::vector<double> row(static_cast<size_t>(keys), 0.0);
    for (int64_t j = 0; j < keys; ++j) {
      double score = 0;
      for (int64_t i = 0; i < size; ++i) {
        score += inputs[0][q.At(at[0], at[1], at[2], i)] * inputs[1][k.At(at[0], key_head, j, i)];
      }
      score *= spec.Float("scale", 1);
      row[static_cast<size_t>(j)] = ScoreWithTerms(spec, inputs, {at[0], at[1], at[2], j}, score);
    }
    SoftmaxInPlace(row);
    for (int64_t i = 0; i < value_size; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < keys; ++j) {
        sum += row[static_cast<size_t>(j)] * inputs[2][v.At(at[0], key_head, j, i)];
      }
      outputs[0][y.At(at[0], at[1], at[2], i)] = sum;
    }
  });
}

constexpr FunctionRow kAttentionReferences[] = {
    {"Attention", Attention},
    {"FusedAttention", FusedAttention},
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
    {"FusedAttention", "f2x3x5x4 f2x3x6x4 f2x3x6x2 -> f2x3x5x2",
     "batch=2 heads=3 key_heads=3 queries=5 keys=6 size=4 value_size=2 scale=0.5"},
    {"FusedAttention", "f2x5x12 f2x6x12 f2x6x9 -> f2x5x9",
     "batch=2 heads=3 key_heads=3 queries=5 keys=6 size=4 value_size=3 scale=0.5 q_axes='bshd' "
     "k_axes='bshd' v_axes='bshd' y_axes='bshd'"},
    {"FusedAttention", "f5x2x12 f6x2x12 f2x3x6x4 -> f5x2x12",
     "batch=2 heads=3 key_heads=3 queries=5 keys=6 size=4 value_size=4 q_axes='sbhd' k_axes='sbhd' "
     "y_axes='sbhd' is_causal=1 scale=0.5"},
    {"FusedAttention", "f2x6x5x4 f2x7x8 f2x2x7x3 -> f2x6x5x3",
     "batch=2 heads=6 key_heads=2 queries=5 keys=7 size=4 value_size=3 k_axes='bshd' scale=0.25"},
    {"FusedAttention", "f2x4x5x4~ f2x1x6x4 f2x1x6x4~ -> f2x4x5x4",
     "batch=2 heads=4 key_heads=1 queries=5 keys=6 size=4 value_size=4"},
    {"FusedAttention", "f2x3x5x4 f2x3x6x4~ f2x3x6x4 b2x1x5x6~ -> f2x3x5x4",
     "batch=2 heads=3 key_heads=3 queries=5 keys=6 size=4 value_size=4 mask_dims=[2,1,5,6]"},
    {"FusedAttention", "f2x3x5x4 f2x3x6x4 f2x3x6x4 b5x1* -> f2x3x5x4",
     "batch=2 heads=3 key_heads=3 queries=5 keys=6 size=4 value_size=4 mask_dims=[1,1,5,1]"},
    {"FusedAttention", "f2x3x5x4 f2x3x6x4 f2x3x6x4 b5x6~ -> f2x3x5x4",
     "batch=2 heads=3 key_heads=3 queries=5 keys=6 size=4 value_size=4 mask_dims=[1,1,5,6] "
     "mask_hides=1 fill=-1.5"},
    {"FusedAttention", "f2x3x5x4 f2x3x6x4 f2x3x6x4 f2x1x1x6~ -> f2x3x5x4",
     "batch=2 heads=3 key_heads=3 queries=5 keys=6 size=4 value_size=4 mask_dims=[2,1,1,6]"},
    {"FusedAttention", "f1x2x3x4 f1x2x4x4 f1x2x4x4 b3x4@[1,1,0,0,0,0,0,0,1,1,1,1] -> f1x2x3x4",
     "batch=1 heads=2 key_heads=2 queries=3 keys=4 size=4 value_size=4 mask_dims=[1,1,3,4]"},
    {"FusedAttention", "f2x3x5x4 f2x3x6x4 f2x3x6x4 _ f3x5x6! -> f2x3x5x4",
     "batch=2 heads=3 key_heads=3 queries=5 keys=6 size=4 value_size=4 bias_dims=[1,3,5,6] "
     "scale=0.5"},
    {"FusedAttention", "f4x3x5x4 f4x3x5x4 f4x3x5x4 f2x1x5x5* f1x3x5x5 -> f4x3x5x4",
     "batch=4 heads=3 key_heads=3 queries=5 keys=5 size=4 value_size=4 mask_dims=[2,1,5,5] "
     "bias_dims=[1,3,5,5]"},
    {"FusedAttention", "f4x2x5x4 f4x2x5x4 f4x2x5x4 f2x1x5x5 b1x2x1x5~ -> f4x2x5x4",
     "batch=4 heads=2 key_heads=2 queries=5 keys=5 size=4 value_size=4 mask_dims=[2,1,5,5] "
     "bias_dims=[1,2,1,5]"},
    {"FusedAttention", "f1x2x40x16 f1x2x40x16 f1x2x40x16 -> f1x2x40x16",
     "batch=1 heads=2 key_heads=2 queries=40 keys=40 size=16 value_size=16 is_causal=1 scale=0.25"},
    {"FusedAttention", "f2x150x2x24 f2x77x2x24 f2x77x2x40 b2x1x1x77~ -> f2x150x2x40",
     "batch=2 heads=2 key_heads=2 queries=150 keys=77 size=24 value_size=40 q_axes='bshd' "
     "k_axes='bshd' v_axes='bshd' y_axes='bshd' mask_dims=[2,1,1,77] scale=0.2"},
    {"FusedAttention", "f1x1x5x72 f1x1x6x72 f1x1x6x72 _ f5x6 -> f1x1x5x72",
     "batch=1 heads=1 key_heads=1 queries=5 keys=6 size=72 value_size=72 bias_dims=[1,1,5,6] "
     "scale=0.1"},
    {"FusedAttention", "f1x1x70x128 f1x1x130x128 f1x1x130x128 -> f1x1x70x128",
     "batch=1 heads=1 key_heads=1 queries=70 keys=130 size=128 value_size=128 scale=0.0883"},
};

}  // namespace

std::span<const FunctionRow> AttentionReferences() { return kAttentionReferences; }
std::span<const CaseRow> AttentionCases() { return kAttentionCases; }

// RotaryEmbedding.

namespace {

void Rotary(const OpSpec& spec, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const Tensor& x = inputs[0];
  const bool is_split = x.rank() == 4;
  const int64_t heads = is_split ? x.dim(1) : spec.Int("num_heads", 1);
  const int64_t features = is_split ? x.dim(3) : x.dim(2) / heads;
  const int64_t asked = spec.Int("rotary_embedding_dim", 0);
  const int64_t rotated = asked == 0 ? features : asked;
  const bool is_interleaved = spec.Int("interleaved", 0) != 0;
  ForEach(x.dims, [&](const Index& index, int64_t i) {
    const int64_t feature = index.back() % features;
    outputs[0][i] = x[i];
    if (feature >= rotated) return;
    const int64_t place = is_split ? index[2] : index[1];
    Index row = {index[0], place};
    if (inputs.size() > 3) row = {static_cast<int64_t>(inputs[3][Offset(inputs[3], row)])};
    row.push_back(is_interleaved ? feature / 2 : feature % (rotated / 2));
    const double cosine = inputs[1][Offset(inputs[1], row)];
    const double sine = inputs[2][Offset(inputs[2], row)];
    const bool is_first = is_interleaved ? feature % 2 == 0 : feature < rotated / 2;
    const int64_t apart = is_interleaved ? 1 : rotated / 2;
    const double partner = x[is_first ? i + apart : i - apart];
    outputs[0][i] = is_first ? x[i] * cosine - partner * sine : partner * sine + x[i] * cosine;
  });
}

constexpr FunctionRow kRotaryReferences[] = {
    {"RotaryEmbedding", Rotary},
};

constexpr CaseRow kRotaryCases[] = {
    {"RotaryEmbedding@23", "f2x3x4x8 f2x4x4 f2x4x4 -> f2x3x4x8"},
    {"RotaryEmbedding@23", "f2x3x4x8 f2x4x4* f2x4x4* -> f2x3x4x8", "interleaved=1"},
    {"RotaryEmbedding@23", "f2x3x4x8 f2x4x2 f2x4x2 -> f2x3x4x8", "rotary_embedding_dim=4"},
    {"RotaryEmbedding@23", "f2x4x12 f9x3 f9x3 i2x4(0..8) -> f2x4x12", "num_heads=2"},
    {"RotaryEmbedding@23", "f2x4x12 f9x2 f9x2 i2x4(0..8) -> f2x4x12",
     "num_heads=2 interleaved=1 rotary_embedding_dim=4"},
    {"RotaryEmbedding@23", "f1x3x4x8 f5x4 f5x4 i1x4@[4,3,0,1] -> f1x3x4x8"},
};

}  // namespace

std::span<const FunctionRow> RotaryReferences() { return kRotaryReferences; }
std::span<const CaseRow> RotaryCases() { return kRotaryCases; }

}  // namespace ckplan::reference
