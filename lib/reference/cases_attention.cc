#include "lib/reference/op_case.h"

namespace ckplan::reference {

namespace {

constexpr CaseRow kRows[] = {
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

std::span<const CaseRow> AttentionCases() { return kRows; }

}  // namespace ckplan::reference
