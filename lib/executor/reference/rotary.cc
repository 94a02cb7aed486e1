// RotaryEmbedding.
#include "lib/executor/reference/families.h"

namespace ckplan::reference {

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
