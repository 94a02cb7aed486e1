#include "lib/reference/op_case.h"

namespace ckplan::reference {

namespace {

constexpr CaseRow kRows[] = {
    {"RotaryEmbedding@23", "f2x3x4x8 f2x4x4 f2x4x4 -> f2x3x4x8"},
    {"RotaryEmbedding@23", "f2x3x4x8 f2x4x4* f2x4x4* -> f2x3x4x8", "interleaved=1"},
    {"RotaryEmbedding@23", "f2x3x4x8 f2x4x2 f2x4x2 -> f2x3x4x8", "rotary_embedding_dim=4"},
    {"RotaryEmbedding@23", "f2x4x12 f9x3 f9x3 i2x4(0..8) -> f2x4x12", "num_heads=2"},
    {"RotaryEmbedding@23", "f2x4x12 f9x2 f9x2 i2x4(0..8) -> f2x4x12",
     "num_heads=2 interleaved=1 rotary_embedding_dim=4"},
    {"RotaryEmbedding@23", "f1x3x4x8 f5x4 f5x4 i1x4@[4,3,0,1] -> f1x3x4x8"},
};

}  // namespace

std::span<const CaseRow> RotaryCases() { return kRows; }

}  // namespace ckplan::reference
